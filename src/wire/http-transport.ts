import type { IncomingMessage } from "node:http";
import { HostError, RequestError } from "../model/errors.ts";
import type { ConnectionPool, Target } from "./connection-pool.ts";
import type { RouteName } from "./contracts.ts";
import { errorFromProblem, readProblem } from "./problem.ts";
import { buildRequest, type WireRequest } from "./build-request.ts";
import type { CallInput, Transport } from "./transport.ts";
import { coordinatorUnreachable } from "./coordinator-unreachable.ts";

export type { Target } from "./connection-pool.ts";

/** For an answer in JSON. One of bytes may take as long as it takes. */
const timeoutMs = 10_000;
/** Over a socket of this machine: the Drover there is alive, and on a busy machine takes its time to open a record. */
const socketTimeoutMs = 60_000;

/** Over HTTP. Rejects with a RequestError where a call was refused, with a HostError where nobody answered. */
export function httpTransport(target: Target): Transport {
  const shown = target.shownAs ?? target.url;
  const limitMs = target.url.startsWith("unix:") ? socketTimeoutMs : timeoutMs;
  let opened: Promise<ConnectionPool> | null = null;
  const connections = (): Promise<ConnectionPool> =>
    (opened ??= import("./connection-pool.ts").then(({ openConnectionPool }) => openConnectionPool(target)));
  return {
    url: shown,
    async json(route, input) {
      const limit = new AbortController();
      const timer = setTimeout(() => limit.abort(new Error(`no answer within ${limitMs / 1000} s`)), limitMs);
      const leave = (): void => limit.abort(input.signal?.reason);
      input.signal?.addEventListener("abort", leave);
      if (input.signal?.aborted) leave();
      try {
        const response = await send(route, input, limit.signal);
        const text = await textOf(response, input, limit.signal);
        return response.statusCode === 204 ? undefined : JSON.parse(text);
      } finally {
        clearTimeout(timer);
        input.signal?.removeEventListener("abort", leave);
      }
    },
    async bytes(route, input) {
      const response = await send(route, input, input.signal);
      if (response.statusCode !== 204)
        return {
          header: (name) => headerOf(response, name),
          bytes: chunksOf(await unpacked(response), shown, input.signal),
        };
      response.resume();
      return null;
    },
  };

  async function send(route: RouteName, input: CallInput, signal: AbortSignal | undefined): Promise<IncomingMessage> {
    const response = await reach(route, input, signal);
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return response;
    throw errorFromProblem(readProblem(status, await textOf(response, input, signal)));
  }

  async function reach(route: RouteName, input: CallInput, signal: AbortSignal | undefined): Promise<IncomingMessage> {
    const request = buildRequest(route, input);
    // it may take long, and only what is packed has signs of life in it meanwhile
    if (route === "POST /backup") request.headers["accept-encoding"] = "gzip";
    try {
      return await exchange(await connections(), request, signal);
    } catch (error) {
      throw absence(error, input.signal);
    }
  }

  async function textOf(response: IncomingMessage, input: CallInput, signal: AbortSignal | undefined): Promise<string> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of chunksOf(response, shown, signal)) chunks.push(chunk as Buffer); // no encoding is set
    } catch (error) {
      throw absence(error, input.signal);
    }
    return Buffer.concat(chunks).toString("utf8");
  }

  /** The caller's own doing is not the coordinator's absence, and what says more is passed on. */
  function absence(error: unknown, own: AbortSignal | undefined): unknown {
    if (own?.aborted || error instanceof HostError || error instanceof RequestError) return error;
    return coordinatorUnreachable(shown, error);
  }
}

/** Resolves with the head of the answer. */
async function exchange(
  connections: ConnectionPool,
  request: WireRequest,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage> {
  try {
    return await exchangeOnce(connections, request, signal);
  } catch (error) {
    // a kept-alive connection that the other side closed at this very moment: what only reads is asked for again
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
      // before what breaks off with it is a reason of its own
      reject(signal?.reason);
      request.destroy();
    };
    signal?.addEventListener("abort", abort, { once: true });
    request.once("close", () => signal?.removeEventListener("abort", abort));
    request.once("response", resolve);
    request.on("error", (error) => {
      const stale = request.reusedSocket && Reflect.get(error, "code") === "ECONNRESET";
      reject(stale ? new StaleConnection(error.message, { cause: error }) : error);
    });
    request.end(body);
  });
}

class StaleConnection extends Error {}

function headerOf({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name];
  return value === undefined ? null : String(value);
}

async function unpacked(response: IncomingMessage): Promise<AsyncIterable<Uint8Array>> {
  if (response.headers["content-encoding"] !== "gzip") return response;
  const [{ createGunzip }, { pipeline }] = await Promise.all([import("node:zlib"), import("node:stream")]);
  // a fault of either ends both and is thrown to the reader
  return pipeline(response, createGunzip(), () => undefined);
}

/** As they come. An answer that ends in the middle is the coordinator's absence, and no defect. */
async function* chunksOf(
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
