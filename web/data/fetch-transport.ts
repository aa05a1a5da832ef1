import type { RouteName } from "../../src/wire/contracts.ts";
import { errorFromProblem, readProblem } from "../../src/wire/problem.ts";
import { buildRequest } from "../../src/wire/build-request.ts";
import type { CallInput, Transport } from "../../src/wire/transport.ts";
import { coordinatorUnreachable } from "../../src/wire/coordinator-unreachable.ts";

const jsonTimeoutMs = 10_000;

/**
 * The transport for browsers, authenticated by the session cookie. Programs use `createHttpTransport`, which also verifies the
 * coordinator's identity.
 */
export function createFetchTransport(url: string): Transport {
  return {
    url,
    async json(route, input) {
      const timeout = AbortSignal.timeout(jsonTimeoutMs);
      const signal = input.signal ? AbortSignal.any([input.signal, timeout]) : timeout;
      const response = await send(url, route, input, signal);
      if (response.status === 204) return undefined;
      return response.json();
    },
    async bytes(route, input) {
      const { status, headers, body } = await send(url, route, input, input.signal ?? null);
      if (status === 204 || body === null) return null;
      return { header: (name) => headers.get(name), bytes: readChunks(body, url, input.signal) };
    },
  };
}

async function send(url: string, route: RouteName, input: CallInput, signal: AbortSignal | null): Promise<Response> {
  const response = await fetchRoute(url, route, input, signal);
  if (response.ok) return response;
  throw errorFromProblem(readProblem(response.status, await response.text()));
}

async function fetchRoute(
  url: string,
  route: RouteName,
  { signal: callerSignal, ...input }: CallInput,
  signal: AbortSignal | null,
): Promise<Response> {
  const { path, body, ...request } = buildRequest(route, input);
  try {
    return await fetch(`${url}${path}`, {
      ...request,
      redirect: "error",
      signal,
      ...(body === undefined ? {} : { body }),
    });
  } catch (error) {
    // An abort by the caller does not mean that the coordinator is unreachable.
    if (callerSignal?.aborted) throw error;
    throw coordinatorUnreachable(url, error);
  }
}

/** Handles the abort itself: fetch's reference to the signal may be garbage-collected while a long response is read. */
async function* readChunks(
  body: ReadableStream<Uint8Array>,
  url: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  // If cancelling fails, the stream has already failed.
  const stop = (): void => void reader.cancel(signal?.reason).catch(() => undefined);
  signal?.addEventListener("abort", stop);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      signal?.throwIfAborted();
      if (done) return;
      yield value;
    }
  } catch (error) {
    // A connection that breaks midway means that the coordinator is unreachable.
    throw error instanceof TypeError && !signal?.aborted ? coordinatorUnreachable(url, error) : error;
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}
