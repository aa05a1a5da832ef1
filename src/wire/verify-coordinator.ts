import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import { HostError } from "../model/errors.ts";
import { hashToken, isLoopbackOrigin, keyIdOf, originOf, proofOf } from "./proof.ts";
import type { ProofRequest } from "./proof-request.ts";

interface Asked {
  /** As messages name it. */
  url: string;
  /** As the Host header has it. */
  host: string;
  prefix: string;
  token: string | null;
  /** Of a Unix socket; null for TCP, where it is the other end of the connection. */
  origin: string | null;
  /** Whether one beyond this machine, which cannot prove itself without TLS, is accepted. */
  allowHttp: boolean;
}

/**
 * Asks for proof on a new connection, before anything else is sent on it. A connection cannot change hands: what is
 * proved once holds until it ends. Rejects where the proof is missing or wrong.
 */
export async function verifyCoordinator(socket: Socket, asked: Asked): Promise<void> {
  const origin = asked.origin ?? originOf(socket.remoteAddress, socket.remotePort);
  // reset as soon as it was there: nobody has answered, so nobody is a stranger
  if (origin === null || socket.destroyed) throw closedEarly();
  if (asked.origin === null && !isLoopbackOrigin(origin)) {
    if (asked.allowHttp) return;
    throw unproven(asked.url, `its name leads to ${origin}, which is not on this machine`);
  }
  // without a token there is no secret to protect, and nothing to recognise the coordinator by
  if (asked.token === null) return;
  const nonce = randomBytes(32).toString("hex");
  const answer = readAnswer(socket);
  socket.write(requestFor(asked, { nonce, key_id: keyIdOf(asked.token), origin }));
  const { status, body, fault } = await answer;
  if (fault !== undefined) throw unproven(asked.url, fault);
  // it cannot now, or a proxy says that nobody is behind it: as good as no answer
  if (status >= 500 || status === 429)
    throw Object.assign(new Error(`asked for proof, it answered with status ${status}`), { status });
  if (status !== 200) throw unproven(asked.url, refusalOf(status, origin));
  const given = /^\{"proof":"([0-9a-f]{64})"\}$/.exec(body)?.[1];
  const right = proofOf(hashToken(asked.token), nonce, origin);
  if (given === undefined || !timingSafeEqual(Buffer.from(given, "hex"), right))
    throw unproven(asked.url, "its proof is wrong");
}

function unproven(url: string, why: string): HostError {
  return new HostError({
    code: "DROVER-API-034",
    message: `The program at ${url} has not proved that it knows this token, so the token was not sent: ${why}.`,
    next: "Check that your coordinator has that address and that DROVER_API_KEY is one of its tokens. Behind a proxy or a forwarded port, add the address with --public-url.",
  });
}

function refusalOf(status: number, origin: string): string {
  if (status === 403 && origin.startsWith("unix:")) return "it does not listen on that socket";
  if (status === 403) return `it does not speak for ${origin}`;
  if (status === 404) return "it knows no /proof, as a coordinator of an earlier version does not";
  return `it answered with status ${status}`;
}

function requestFor({ host, prefix }: Asked, request: ProofRequest): string {
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

interface Answer {
  status: number;
  body: string;
  /** What keeps it from being a proof. */
  fault?: string;
}

/** More than a coordinator's answer, with what a proxy adds to its head. */
const mostBytes = 16 * 1024;

/**
 * Reads the socket itself, so that nothing is left of it that the next request's answer could be mixed up with. Rejects
 * where the connection ends before there is an answer.
 */
function readAnswer(socket: Socket): Promise<Answer> {
  let read = "";
  return new Promise<Answer>((resolve, reject) => {
    const take = (chunk: Buffer): void => {
      read += chunk.toString("latin1");
      const answer = read.length > mostBytes ? noProof("its answer does not end") : parseAnswer(read);
      if (answer === null) return;
      leave();
      resolve(answer);
    };
    const fail = (error: Error): void => {
      leave();
      reject(error);
    };
    const close = (): void => fail(closedEarly());
    const leave = (): void => void socket.off("data", take).off("error", fail).off("end", close).off("close", close);
    socket.on("data", take).on("error", fail).on("end", close).on("close", close);
  });
}

function closedEarly(): Error {
  return Object.assign(new Error("the connection was closed before it was proved"), { code: "ECONNRESET" });
}

/** null while more is to come. Takes only the one shape that a coordinator answers in. */
function parseAnswer(read: string): Answer | null {
  const headEnd = read.indexOf("\r\n\r\n");
  if (headEnd < 0) return "HTTP/1.1 ".startsWith(read.slice(0, 9)) ? null : noProof("its answer is not HTTP");
  const [first = "", ...lines] = read.slice(0, headEnd).split("\r\n");
  const status = Number(/^HTTP\/1\.1 ([1-5]\d\d)(?: |$)/.exec(first)?.[1]);
  if (Number.isNaN(status)) return noProof("its answer is not HTTP");
  // whatever else it says, it is no proof
  if (status !== 200) return { status, body: "" };
  const headers = lines.map((line) => /^([\w-]+):[ \t]*(.*?)[ \t]*$/.exec(line)?.slice(1) ?? ["", ""]);
  const valuesOf = (wanted: string): string[] =>
    headers.flatMap(([name = "", value = ""]) => (name.toLowerCase() === wanted ? [value] : []));
  const lengths = valuesOf("content-length");
  if (lengths.length !== 1 || !/^\d{1,4}$/.test(lengths[0]!) || valuesOf("transfer-encoding").length > 0)
    return noProof("its answer is not a proof");
  const body = read.slice(headEnd + 4);
  const length = Number(lengths[0]);
  if (body.length > length) return noProof("it sent more than it was asked for");
  return body.length < length ? null : { status, body };
}

function noProof(fault: string): Answer {
  return { status: 0, body: "", fault };
}
