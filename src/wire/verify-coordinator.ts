import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import { HostError } from "../model/errors.ts";
import { hashToken, isLoopbackOrigin, toKeyId, formatOrigin, computeProof } from "./proof.ts";
import type { ProofRequest } from "./proof-request.ts";

interface Peer {
  /** The address to show in messages. */
  url: string;
  /** Value of the Host header. */
  host: string;
  prefix: string;
  token: string | null;
  /** The origin of a Unix socket; null for TCP, where the connection's remote end is the origin. */
  origin: string | null;
  /** Accepts a coordinator on another machine, which cannot prove itself without TLS. */
  allowHttp: boolean;
}

/**
 * Asks the coordinator to prove that it knows the token, before anything else is sent on a new connection. The other end
 * of a connection cannot change, so one proof is enough. Rejects if the proof is missing or wrong.
 */
export async function verifyCoordinator(socket: Socket, peer: Peer): Promise<void> {
  const origin = peer.origin ?? formatOrigin(socket.remoteAddress, socket.remotePort);
  // The connection was reset at once: the coordinator is unreachable, which is no sign of an impostor.
  if (origin === null || socket.destroyed) throw closedEarly();
  if (peer.origin === null && !isLoopbackOrigin(origin)) {
    if (peer.allowHttp) return;
    throw unproven(peer.url, `its name resolves to ${origin}, which is not on this machine`);
  }
  // Without a token there is no secret to protect and no way to recognize the coordinator.
  if (peer.token === null) return;
  const nonce = randomBytes(32).toString("hex");
  const response = readResponse(socket);
  socket.write(formatProofRequest(peer, { nonce, key_id: toKeyId(peer.token), origin }));
  const { status, body, problem } = await response;
  if (problem !== undefined) throw unproven(peer.url, problem);
  // The coordinator is overloaded, or a proxy reports that it is down: the same as no response.
  if (status >= 500 || status === 429)
    throw Object.assign(new Error(`POST /proof returned status ${status}`), { status });
  if (status !== 200) throw unproven(peer.url, describeRefusal(status, origin));
  const proof = /^\{"proof":"([0-9a-f]{64})"\}$/.exec(body)?.[1];
  const expected = computeProof(hashToken(peer.token), nonce, origin);
  if (proof === undefined || !timingSafeEqual(Buffer.from(proof, "hex"), expected))
    throw unproven(peer.url, "its proof is wrong");
}

function unproven(url: string, reason: string): HostError {
  return new HostError({
    code: "DROVER-API-034",
    message: `The program at ${url} has not proved that it knows this token, so the token was not sent: ${reason}.`,
    next: "Check that this is your coordinator's address and that DROVER_API_KEY is one of its tokens. If it is behind a proxy or a forwarded port, start it with --public-url and this address.",
  });
}

function describeRefusal(status: number, origin: string): string {
  if (status === 403 && origin.startsWith("unix:")) return "it does not listen on that socket";
  if (status === 403) return `${origin} is not one of its addresses`;
  if (status === 404) return "it has no route /proof, so it may be an older coordinator";
  return `it responded with status ${status}`;
}

function formatProofRequest({ host, prefix }: Peer, request: ProofRequest): string {
  const body = JSON.stringify(request);
  const head = [
    `POST ${prefix}/proof HTTP/1.1`,
    `Host: ${host}`,
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    "Connection: keep-alive",
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

interface ProofResponse {
  status: number;
  body: string;
  /** Why the response cannot be a proof. */
  problem?: string;
}

/** Larger than any proof, including the headers a proxy may add. */
const maxBytes = 16 * 1024;

/**
 * Reads from the raw socket, so that no leftover byte can be mistaken for the response to the next request. Rejects if the
 * connection closes before the response is complete.
 */
function readResponse(socket: Socket): Promise<ProofResponse> {
  let received = "";
  return new Promise<ProofResponse>((resolve, reject) => {
    const onData = (chunk: Buffer): void => {
      received += chunk.toString("latin1");
      const response = received.length > maxBytes ? invalidProof("its response does not end") : parseResponse(received);
      if (response === null) return;
      cleanup();
      resolve(response);
    };
    const onError = (error: Error): void => {
      cleanup();
      reject(error);
    };
    const onClose = (): void => onError(closedEarly());
    const cleanup = (): void =>
      void socket.off("data", onData).off("error", onError).off("end", onClose).off("close", onClose);
    socket.on("data", onData).on("error", onError).on("end", onClose).on("close", onClose);
  });
}

function closedEarly(): Error {
  return Object.assign(new Error("the connection was closed before the coordinator proved itself"), {
    code: "ECONNRESET",
  });
}

/** Returns null while the response is incomplete. Accepts only the exact form a coordinator sends. */
function parseResponse(received: string): ProofResponse | null {
  const headEnd = received.indexOf("\r\n\r\n");
  if (headEnd < 0)
    return "HTTP/1.1 ".startsWith(received.slice(0, 9)) ? null : invalidProof("its response is not HTTP");
  const [first = "", ...lines] = received.slice(0, headEnd).split("\r\n");
  const status = Number(/^HTTP\/1\.1 ([1-5]\d\d)(?: |$)/.exec(first)?.[1]);
  if (Number.isNaN(status)) return invalidProof("its response is not HTTP");
  // The body does not matter: only a 200 can carry a proof.
  if (status !== 200) return { status, body: "" };
  const headers = lines.map((line) => /^([\w-]+):[ \t]*(.*?)[ \t]*$/.exec(line)?.slice(1) ?? ["", ""]);
  const findValues = (wantedName: string): string[] =>
    headers.flatMap(([name = "", value = ""]) => (name.toLowerCase() === wantedName ? [value] : []));
  const lengths = findValues("content-length");
  if (lengths.length !== 1 || !/^\d{1,4}$/.test(lengths[0]!) || findValues("transfer-encoding").length > 0)
    return invalidProof("its response is not a proof");
  const body = received.slice(headEnd + 4);
  const length = Number(lengths[0]);
  if (body.length > length) return invalidProof("it sent more than a proof");
  return body.length < length ? null : { status, body };
}

function invalidProof(problem: string): ProofResponse {
  return { status: 0, body: "", problem };
}
