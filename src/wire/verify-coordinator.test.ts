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

interface ImpostorInput {
  socket: Socket;
  request: ProofRequest;
  /** A real coordinator on another port that knows the token. */
  realCoordinator: TestCoordinator;
  /** A proof that the real coordinator gave earlier. */
  oldProof: string;
}
type Impostor = (input: ImpostorInput) => void;

const buildResponse = (proof: unknown, more = ""): string => {
  const body = JSON.stringify({ proof });
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`;
};
const wrongProof = "0".repeat(64);
const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/** Relays the request to the real coordinator, optionally changed, and returns its response. */
const relay =
  (change: (input: ImpostorInput) => Partial<ProofRequest> = () => ({})): Impostor =>
  (input) => {
    const { port } = new URL(input.realCoordinator.url);
    const body = JSON.stringify({ ...input.request, ...change(input) });
    const coordinatorSocket = connect(Number(port), "127.0.0.1");
    coordinatorSocket.write(
      `POST /proof HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
    );
    coordinatorSocket.pipe(input.socket).on("error", () => undefined);
  };

const impostors: [what: string, conflict: string, Impostor][] = [
  ["sends zeros as the proof", "unproven", ({ socket }) => socket.write(buildResponse(wrongProof))],
  ["replays an old proof", "unproven", ({ socket, oldProof }) => socket.write(buildResponse(oldProof))],
  ["sends the nonce back", "unproven", ({ socket, request }) => socket.write(buildResponse(request.nonce))],
  ["sends an empty proof", "unproven", ({ socket }) => socket.write(buildResponse(""))],
  ["sends a list as the proof", "unproven", ({ socket }) => socket.write(buildResponse([wrongProof]))],
  [
    "signs with the key id",
    "unproven",
    ({ socket, request: { key_id, nonce, origin } }) =>
      socket.write(
        buildResponse(createHmac("sha256", key_id).update(`drover proof 1\n${nonce}\n${origin}`).digest("hex")),
      ),
  ],
  ["relays to a live coordinator on another port", "unproven", relay()],
  [
    "relays with the origin of that port",
    "unproven",
    relay(({ realCoordinator }) => ({ origin: new URL(realCoordinator.url).origin })),
  ],
  [
    "relays with another name for the same machine",
    "unproven",
    relay(({ request }) => ({ origin: request.origin.replace("127.0.0.1", "localhost") })),
  ],
  [
    "redirects to the coordinator",
    "unproven",
    ({ socket, realCoordinator }) =>
      socket.write(
        `HTTP/1.1 307 Temporary Redirect\r\nlocation: ${realCoordinator.url}/proof\r\ncontent-length: 0\r\n\r\n`,
      ),
  ],
  [
    "asks for the token",
    "unproven",
    ({ socket }) => socket.write("HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\r\n"),
  ],
  [
    "sends 100 Continue first",
    "unproven",
    ({ socket, oldProof }) => socket.write(`HTTP/1.1 100 Continue\r\n\r\n${buildResponse(oldProof)}`),
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
    ({ socket, oldProof }) => socket.write(`${buildResponse(oldProof)}${buildResponse(oldProof)}`),
  ],
  [
    "sends junk before the proof",
    "unproven",
    ({ socket, oldProof }) => socket.write(`\r\n\r\n${buildResponse(oldProof)}`),
  ],
  ["speaks another protocol", "unproven", ({ socket }) => socket.write("SSH-2.0-OpenSSH_9.6\r\n")],
  [
    "speaks HTTP/1.0",
    "unproven",
    ({ socket, oldProof }) => socket.write(buildResponse(oldProof).replace("HTTP/1.1", "HTTP/1.0")),
  ],
  [
    "responds like a web server",
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
  const realCoordinator = await startTestCoordinator();
  cleanups.push(() => realCoordinator.dispose());
  const { token } = await realCoordinator.client.tokens.create({ role: "runner", subject: "box" });
  const oldProof = computeProof(hashToken(token), "1".repeat(64), "http://127.0.0.1:1").toString("hex");
  const impostorServer = await listen((socket, request) => impostor({ socket, request, realCoordinator, oldProof }));
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

test("accepts the real coordinator, by address and by name", async () => {
  const realCoordinator = await startTestCoordinator();
  cleanups.push(() => realCoordinator.dispose());
  await expect(realCoordinator.client.runs.list()).resolves.toMatchObject({ items: [] });
  const clientByName = createClient({
    url: realCoordinator.url.replace("127.0.0.1", "localhost"),
    token: realCoordinator.adminToken,
  });
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
  const openSockets = new Set<Socket>();
  const server = createServer((socket) => {
    openSockets.add(socket);
    let socketText = "";
    socket.on("error", () => undefined).on("close", () => openSockets.delete(socket));
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      const previousText = socketText;
      socketText += chunk.toString("latin1");
      const body = /\r\n\r\n(\{[^}]*\})$/.exec(socketText)?.[1];
      if (body !== undefined && previousText !== socketText) onRequest(socket, JSON.parse(body) as ProofRequest);
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => {
    for (const socket of openSockets) socket.destroy();
    server.close();
  });
  // The address of a TCP server is never a string.
  const { address, port } = server.address() as AddressInfo;
  return { url: formatOrigin(address, port)!, received: () => received };
}
