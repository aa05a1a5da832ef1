import { createHmac } from "node:crypto";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { createClient } from "./client.ts";
import { createHttpPort } from "./http-port.ts";
import { hashToken, formatOrigin, computeProof } from "./proof.ts";
import type { ProofRequest } from "./proof-request.ts";

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

interface ProofAttempt {
  socket: Socket;
  request: ProofRequest;
  /** A real coordinator on another port that knows the token. */
  real: TestCoordinator;
  /** A proof that the real coordinator gave earlier. */
  old: string;
}
type Impostor = (attempt: ProofAttempt) => void;

const buildResponse = (proof: unknown, more = ""): string => {
  const body = JSON.stringify({ proof });
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`;
};
const wrongProof = "0".repeat(64);
const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/** Relays the request to the real coordinator, optionally changed, and returns its response. */
const relay =
  (change: (attempt: ProofAttempt) => Partial<ProofRequest> = () => ({})): Impostor =>
  (attempt) => {
    const { port } = new URL(attempt.real.url);
    const body = JSON.stringify({ ...attempt.request, ...change(attempt) });
    const coordinatorSocket = connect(Number(port), "127.0.0.1");
    coordinatorSocket.write(
      `POST /proof HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
    );
    coordinatorSocket.pipe(attempt.socket).on("error", () => undefined);
  };

const impostors: [what: string, conflict: string, Impostor][] = [
  ["proves with zeros", "unproven", ({ socket }) => socket.write(buildResponse(wrongProof))],
  ["replays an old proof", "unproven", ({ socket, old }) => socket.write(buildResponse(old))],
  ["sends the nonce back", "unproven", ({ socket, request }) => socket.write(buildResponse(request.nonce))],
  ["sends an empty proof", "unproven", ({ socket }) => socket.write(buildResponse(""))],
  ["proves with a list", "unproven", ({ socket }) => socket.write(buildResponse([wrongProof]))],
  [
    "signs with the key id",
    "unproven",
    ({ socket, request: { key_id, nonce, origin } }) =>
      socket.write(
        buildResponse(createHmac("sha256", key_id).update(`drover proof 1\n${nonce}\n${origin}`).digest("hex")),
      ),
  ],
  ["relays to a live coordinator on another port", "unproven", relay()],
  ["relays with the origin of that port", "unproven", relay(({ real }) => ({ origin: new URL(real.url).origin }))],
  [
    "relays with another name of the same machine",
    "unproven",
    relay(({ request }) => ({ origin: request.origin.replace("127.0.0.1", "localhost") })),
  ],
  [
    "redirects to the coordinator",
    "unproven",
    ({ socket, real }) =>
      socket.write(`HTTP/1.1 307 Temporary Redirect\r\nlocation: ${real.url}/proof\r\ncontent-length: 0\r\n\r\n`),
  ],
  [
    "asks for the token",
    "unproven",
    ({ socket }) => socket.write("HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\r\n"),
  ],
  [
    "sends 100 Continue first",
    "unproven",
    ({ socket, old }) => socket.write(`HTTP/1.1 100 Continue\r\n\r\n${buildResponse(old)}`),
  ],
  [
    "responds in chunks",
    "unproven",
    ({ socket }) => socket.write(`${chunked}4c\r\n{"proof":"${wrongProof}"}\r\n0\r\n\r\n`),
  ],
  ["never ends its body", "unproven", ({ socket }) => flood(socket, chunked, "a".repeat(1000))],
  ["never ends its headers", "unproven", ({ socket }) => flood(socket, "HTTP/1.1 200 OK\r\n", "x-more: 1\r\n")],
  [
    "sends two Content-Lengths",
    "unproven",
    ({ socket }) => socket.write(buildResponse(wrongProof, "content-length: 0\r\n")),
  ],
  [
    "sends an enormous Content-Length",
    "unproven",
    ({ socket }) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n{"),
  ],
  [
    "sends junk after the proof",
    "unproven",
    ({ socket, old }) => socket.write(`${buildResponse(old)}${buildResponse(old)}`),
  ],
  ["sends junk before the proof", "unproven", ({ socket, old }) => socket.write(`\r\n\r\n${buildResponse(old)}`)],
  ["speaks another protocol", "unproven", ({ socket }) => socket.write("SSH-2.0-OpenSSH_9.6\r\n")],
  [
    "speaks HTTP/1.0",
    "unproven",
    ({ socket, old }) => socket.write(buildResponse(old).replace("HTTP/1.1", "HTTP/1.0")),
  ],
  [
    "responds as a web server",
    "unproven",
    ({ socket }) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"),
  ],
  [
    "responds with 503",
    "away",
    ({ socket }) => socket.write("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"),
  ],
  ["disconnects", "away", ({ socket }) => socket.destroy()],
  ["resets the connection", "away", ({ socket }) => socket.resetAndDestroy()],
  ["stays silent", "away", () => undefined],
];

test.each(impostors)("an impostor that %s gets no token and hands out no run", async (_what, conflict, impostor) => {
  const real = await startTestCoordinator();
  cleanups.push(() => real.dispose());
  const { token } = await real.client.tokens.create({ role: "runner", subject: "box" });
  const old = computeProof(hashToken(token), "1".repeat(64), "http://127.0.0.1:1").toString("hex");
  const impostorServer = await listen((socket, request) => impostor({ socket, request, real, old }));
  // Only a silent impostor must time out. A flood takes as long as the machine needs.
  const port = createHttpPort({ url: impostorServer.url, token, timeoutMs: conflict === "away" ? 1000 : 60_000 });
  cleanups.push(() => port.close());
  await expect(port.register(registration("key-a"))).rejects.toMatchObject({ conflict });
  await expect(
    createClient({ url: impostorServer.url, token }).submit({ agent_name: "secret-agent" }),
  ).rejects.toMatchObject({
    code: conflict === "away" ? "DROVER-API-023" : "DROVER-API-034",
  });
  const received = impostorServer.received();
  expect(received).not.toContain(token);
  expect(received).not.toContain(hashToken(token).slice(0, 20));
  expect(received).not.toContain("secret-agent");
  expect(received.match(/^[A-Z]+ \S+ HTTP/gm)?.every((line) => line === "POST /proof HTTP")).toBe(true);
});

test("verifies the real coordinator and then uses the same connection", async () => {
  const real = await startTestCoordinator();
  cleanups.push(() => real.dispose());
  await expect(real.client.runs.list()).resolves.toMatchObject({ items: [] });
  const clientByName = createClient({ url: real.url.replace("127.0.0.1", "localhost"), token: real.adminToken });
  await expect(clientByName.me()).resolves.toMatchObject({ role: "admin" });
});

function flood(socket: Socket, head: string, chunk: string): void {
  socket.write(head);
  const timer = setInterval(() => void socket.write(chunk.repeat(10)), 1);
  socket.on("close", () => clearInterval(timer));
}

/** Records every byte it receives, and passes each proof request to `onRequest`. */
async function listen(onRequest: (socket: Socket, request: ProofRequest) => void) {
  let received = "";
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    let own = "";
    socket.on("error", () => undefined).on("close", () => open.delete(socket));
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      const before = own;
      own += chunk.toString("latin1");
      const body = /\r\n\r\n(\{[^}]*\})$/.exec(own)?.[1];
      if (body !== undefined && before !== own) onRequest(socket, JSON.parse(body) as ProofRequest);
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  // The address of a TCP server is never a string.
  const { address, port } = server.address() as AddressInfo;
  return { url: formatOrigin(address, port)!, received: () => received };
}
