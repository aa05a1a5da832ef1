import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createAttemptTokens } from "../serve/attempt-token.ts";
import { createProver } from "../serve/prover.ts";
import { createClient } from "./client.ts";
import { hashToken, computeProof } from "./proof.ts";
import type { ProofRequest } from "./proof-request.ts";
import { readSocketOrigin } from "./socket-origin.ts";

// Without isolation, runs of one user can replace each other's sockets. They must not receive a token that way.
const attemptTokens = createAttemptTokens(Buffer.alloc(32, 7), null);
const token = attemptTokens.sign("0198-run", 3);
const servers: Server[] = [];
const connections: Socket[] = [];
let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), "drover-sockets-"))));
afterEach(async () => {
  for (const connection of connections.splice(0)) connection.destroy();
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
  rmSync(directory, { recursive: true, force: true });
});

const path = (name = "s"): string => join(directory, name);

/** Starts a coordinator that knows the tokens of its runs, and records the Authorization headers it receives. */
async function startRealCoordinator(at = path()): Promise<{ authorizationHeaders: string[] }> {
  const authorizationHeaders: string[] = [];
  const sockets = new Set<string>();
  const prove = createProver({ read: { token_hash: async () => null }, attemptTokens, publicUrls: [], sockets });
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.setHeader("connection", "close");
    if (request.url !== "/proof") {
      authorizationHeaders.push(request.headers.authorization ?? "");
      return void response.writeHead(200, { "content-type": "application/json" }).end('{"items":[]}');
    }
    const proof = await prove((await json(request)) as ProofRequest, null);
    response.setHeader("connection", "keep-alive");
    const body = JSON.stringify(proof === null ? {} : { proof });
    response.writeHead(proof === null ? 403 : 200, { "content-length": body.length }).end(body);
  };
  const server = createHttpServer((request, response) => void respond(request, response));
  await listenOnSocket(server, at);
  sockets.add(readSocketOrigin(at));
  return { authorizationHeaders };
}

function listenOnSocket(server: Server, at: string): Promise<void> {
  servers.push(server.on("connection", (socket) => connections.push(socket)));
  return new Promise((resolve) => server.listen(at, resolve));
}

interface ProofAttempt {
  socket: Socket;
  request: ProofRequest;
  received: string;
}

/** Starts an impostor on the socket. Returns a function that returns everything it has received. */
async function startImpostor(respond: (attempt: ProofAttempt) => void): Promise<() => string> {
  let received = "";
  const server = createServer((socket) => {
    let own = "";
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      received += chunk.toString();
      own += chunk.toString();
      const body = own.split("\r\n\r\n")[1];
      if (own.startsWith("POST /proof") && body?.endsWith("}"))
        respond({ socket, request: JSON.parse(body) as ProofRequest, received: own });
    });
  });
  await listenOnSocket(server, path());
  return () => received;
}

const buildResponse = (proof: string): string => {
  const body = JSON.stringify({ proof });
  return `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
};
const relay =
  (name: string, change: Partial<ProofRequest> = {}) =>
  (attempt: ProofAttempt) => {
    const body = JSON.stringify({ ...attempt.request, ...change });
    const coordinatorSocket = connect(path(name));
    coordinatorSocket.write(`POST /proof HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    coordinatorSocket.on("error", () => undefined).pipe(attempt.socket);
  };
const impostorsToken = attemptTokens.sign("0198-impostor", 1);

test.each<[what: string, code: string, (attempt: ProofAttempt) => void]>([
  [
    "responds to everything with 200",
    "034",
    ({ socket }) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
  ],
  ["proves with zeros", "034", ({ socket }) => socket.write(buildResponse("0".repeat(64)))],
  ["sends the nonce back", "034", ({ socket, request }) => socket.write(buildResponse(request.nonce))],
  [
    "proves that it knows its own token",
    "034",
    ({ socket, request }) =>
      socket.write(
        buildResponse(computeProof(hashToken(impostorsToken), request.nonce, request.origin).toString("hex")),
      ),
  ],
  [
    "replays an old proof",
    "034",
    ({ socket, request }) =>
      socket.write(buildResponse(computeProof(hashToken(token), "1".repeat(64), request.origin).toString("hex"))),
  ],
  ["relays to the coordinator, whose socket it has moved away", "034", relay("real")],
  ["relays with a path as the origin", "034", relay("real", { origin: "unix:real" })],
  ["relays with an empty origin", "034", relay("real", { origin: "" })],
  ["has no /proof", "034", ({ socket }) => socket.write("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")],
  ["asks for the token", "034", ({ socket }) => socket.write("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")],
  [
    "redirects the caller",
    "034",
    ({ socket }) => socket.write("HTTP/1.1 307 T\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n"),
  ],
  ["speaks another protocol", "034", ({ socket }) => socket.write("SSH-2.0-OpenSSH_9.6\r\n")],
  ["disconnects", "023", ({ socket }) => socket.destroy()],
  [
    "responds with 503",
    "023",
    ({ socket }) => socket.write("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"),
  ],
])("an impostor on the socket that %s gets no token", async (_, code, respond) => {
  const { authorizationHeaders } = await startRealCoordinator();
  renameSync(path(), path("real"));
  const received = await startImpostor(respond);
  const client = createClient({ url: `unix:${path()}`, token });
  await expect(client.submit({ agent_name: "secret-agent" })).rejects.toMatchObject({ code: `DROVER-API-${code}` });
  expect(received()).toContain("POST /proof");
  expect(received()).not.toContain(token.slice(-20));
  expect(received()).not.toContain("secret-agent");
  expect(authorizationHeaders).toEqual([]);
});

test("sends the token to the real coordinator, even if its socket was moved and moved back", async () => {
  const { authorizationHeaders } = await startRealCoordinator();
  renameSync(path(), path("away"));
  renameSync(path("away"), path());
  await expect(createClient({ url: `unix:${path()}`, token }).agents.list()).resolves.toMatchObject({ items: [] });
  expect(authorizationHeaders).toEqual([`Bearer ${token}`]);
});

test("sends no token to a coordinator that does not know it", async () => {
  const { authorizationHeaders } = await startRealCoordinator();
  const unknownToken = createAttemptTokens(Buffer.alloc(32, 8), null).sign("0198-run", 3);
  const client = createClient({ url: `unix:${path()}`, token: unknownToken });
  await expect(client.agents.list()).rejects.toMatchObject({ code: "DROVER-API-034" });
  expect(authorizationHeaders).toEqual([]);
});
