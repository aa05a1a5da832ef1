import type { IncomingMessage } from "node:http";
import { HostError, RequestError } from "../model/errors.ts";
import type { ConnectionPool, Target } from "./connection-pool.ts";
import type { RouteName } from "./contracts.ts";
import { errorFromProblem, readProblem } from "./problem.ts";
import { buildRequest, type WireRequest } from "./build-request.ts";
import type { CallInput, Transport } from "./transport.ts";
import { coordinatorUnreachable } from "./coordinator-unreachable.ts";

export type { Target } from "./connection-pool.ts";

/** Timeout for JSON responses. Downloads have none. */
const timeoutMs = 10_000;
/** The Drover process at the other end of a Unix socket is known to be alive, but opening the record can take a while. */
const socketTimeoutMs = 60_000;

/** Rejects with a RequestError if a call was refused and with a HostError if the coordinator did not respond. */
export function createHttpTransport(target: Target): Transport {
  const displayUrl = target.displayUrl ?? target.url;
  const limitMs = target.url.startsWith("unix:") ? socketTimeoutMs : timeoutMs;
  let openedPool: Promise<ConnectionPool> | null = null;
  const openPool = (): Promise<ConnectionPool> =>
    (openedPool ??= import("./connection-pool.ts").then(({ openConnectionPool }) => openConnectionPool(target)));
  return {
    url: displayUrl,
    async json(route, input) {
      const limit = new AbortController();
      const timer = setTimeout(() => limit.abort(new Error(`no response within ${limitMs / 1000} s`)), limitMs);
      const onAbort = (): void => limit.abort(input.signal?.reason);
      input.signal?.addEventListener("abort", onAbort);
      if (input.signal?.aborted) onAbort();
      try {
        const response = await send(route, input, limit.signal);
        const text = await readText(response, input, limit.signal);
        return response.statusCode === 204 ? undefined : JSON.parse(text);
      } finally {
        clearTimeout(timer);
        input.signal?.removeEventListener("abort", onAbort);
      }
    },
    async bytes(route, input) {
      const response = await send(route, input, input.signal);
      if (response.statusCode !== 204)
        return {
          header: (name) => getHeader(response, name),
          bytes: readChunks(await decompress(response), displayUrl, input.signal),
        };
      response.resume();
      return null;
    },
  };

  async function send(route: RouteName, input: CallInput, signal: AbortSignal | undefined): Promise<IncomingMessage> {
    const response = await sendRequest(route, input, signal);
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return response;
    throw errorFromProblem(readProblem(status, await readText(response, input, signal)));
  }

  async function sendRequest(
    route: RouteName,
    input: CallInput,
    signal: AbortSignal | undefined,
  ): Promise<IncomingMessage> {
    const request = buildRequest(route, input);
    // A backup can take minutes to prepare, and only a gzip response can carry keepalives meanwhile.
    if (route === "POST /backup") request.headers["accept-encoding"] = "gzip";
    try {
      return await exchange(await openPool(), request, signal);
    } catch (error) {
      throw toClientError(error, input.signal);
    }
  }

  async function readText(
    response: IncomingMessage,
    input: CallInput,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    const chunks: Buffer[] = [];
    try {
      // Without an encoding, chunks are buffers.
      for await (const chunk of readChunks(response, displayUrl, signal)) chunks.push(chunk as Buffer);
    } catch (error) {
      throw toClientError(error, input.signal);
    }
    return Buffer.concat(chunks).toString("utf8");
  }

  /** Wraps network errors. Keeps the caller's own abort, and errors that already explain themselves. */
  function toClientError(error: unknown, callerSignal: AbortSignal | undefined): unknown {
    if (callerSignal?.aborted || error instanceof HostError || error instanceof RequestError) return error;
    return coordinatorUnreachable(displayUrl, error);
  }
}

/** Resolves with the head of the response. */
async function exchange(
  connections: ConnectionPool,
  request: WireRequest,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage> {
  try {
    return await exchangeOnce(connections, request, signal);
  } catch (error) {
    // The other side closed a kept-alive connection just now. Only reads are safe to repeat.
    if (!(error instanceof StaleConnection) || request.method !== "GET") throw error;
    return exchangeOnce(connections, request, signal);
  }
}

function exchangeOnce(
  connections: ConnectionPool,
  { method, path, headers, body }: WireRequest,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage> {
  return new Promise<IncomingMessage>((resolve, reject) => {
    signal?.throwIfAborted();
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
    const request = connections.request(path, { method, headers: { ...headers, ...length } });
    const abort = (): void => {
      // Reject first: destroying the request raises errors that would hide the reason.
      reject(signal?.reason);
      request.destroy();
    };
    signal?.addEventListener("abort", abort, { once: true });
    request.once("close", () => signal?.removeEventListener("abort", abort));
    request.once("response", resolve);
    request.on("error", (error) => {
      const isStale = request.reusedSocket && Reflect.get(error, "code") === "ECONNRESET";
      reject(isStale ? new StaleConnection(error.message, { cause: error }) : error);
    });
    request.end(body);
  });
}

class StaleConnection extends Error {}

function getHeader({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name];
  return value === undefined ? null : String(value);
}

async function decompress(response: IncomingMessage): Promise<AsyncIterable<Uint8Array>> {
  if (response.headers["content-encoding"] !== "gzip") return response;
  const [{ createGunzip }, { pipeline }] = await Promise.all([import("node:zlib"), import("node:stream")]);
  // If either stream fails, pipeline destroys both and the reader sees the error.
  return pipeline(response, createGunzip(), () => undefined);
}

/** Yields the chunks. A response that breaks off means that the coordinator went away. */
async function* readChunks(
  body: AsyncIterable<Uint8Array>,
  url: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body) yield chunk;
  } catch (error) {
    signal?.throwIfAborted();
    throw coordinatorUnreachable(url, error);
  }
}
