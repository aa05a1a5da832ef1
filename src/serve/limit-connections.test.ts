import { createServer, get, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { limitConnections } from "./limit-connections.ts";

let server: Server;
let port = 0;
let openResponses: ServerResponse[];
const sockets: Socket[] = [];
beforeEach(async () => {
  openResponses = [];
  server = createServer(
    (request, outgoing) => void (request.url === "/held" ? openResponses.push(outgoing) : outgoing.end("ok")),
  );
  limitConnections(server, 4);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.closeAllConnections();
  server.close();
});

const countConnections = () =>
  new Promise<number>((resolve) => server.getConnections((_, connections) => resolve(connections)));
const waitForClose = (socket: Socket) => new Promise<void>((resolve) => void socket.once("close", resolve).resume());
async function open(text = ""): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  sockets.push(socket);
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  if (text !== "") socket.write(text);
  return socket;
}

test("closes idle connections, and those with half a request, in favor of new ones", async () => {
  const [first, second] = [await open(), await open("GET / HTTP/1.1\r\nhost: x\r\n")];
  await expect.poll(countConnections).toBe(2);
  await open();
  await open();
  await expect.poll(countConnections).toBe(4);
  const firstClosed = waitForClose(first);
  await open();
  await firstClosed;
  const secondClosed = waitForClose(second);
  await open();
  await secondClosed;
  expect(await countConnections()).toBe(4);
});

test("keeps a connection with an open request, and closes the longest-idle one first", async () => {
  const busy = await open("GET /held HTTP/1.1\r\nhost: x\r\n\r\n");
  await expect.poll(() => openResponses.length).toBe(1);
  const recentlyUsed = await open();
  const [idle] = [await open(), await open()];
  await expect.poll(countConnections).toBe(4);
  recentlyUsed.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  await new Promise((resolve) => recentlyUsed.once("data", resolve));
  const idleClosed = waitForClose(idle);
  await open();
  await idleClosed;
  expect([busy.destroyed, recentlyUsed.destroyed]).toEqual([false, false]);
  openResponses[0]!.end("answer");
  expect(String(await new Promise((resolve) => busy.once("data", resolve)))).toContain("answer");
});

test("closes a new connection if all others have open requests", async () => {
  for (let index = 0; index < 4; index += 1) await open("GET /held HTTP/1.1\r\nhost: x\r\n\r\n");
  await expect.poll(() => openResponses.length).toBe(4);
  await waitForClose(await open());
  for (const outgoing of openResponses) outgoing.end();
  const status = () =>
    new Promise((resolve) =>
      get({ port, host: "127.0.0.1", agent: false }, (response) => resolve(response.resume().statusCode)).on(
        "error",
        resolve,
      ),
    );
  await expect.poll(status).toBe(200);
});
