import type { RouteName } from "../../src/wire/contracts.ts";
import { errorFromProblem, readProblem } from "../../src/wire/problem.ts";
import { buildRequest } from "../../src/wire/build-request.ts";
import type { CallInput, Transport } from "../../src/wire/transport.ts";
import { coordinatorUnreachable } from "../../src/wire/coordinator-unreachable.ts";

/** For an answer in JSON. */
const timeoutMs = 10_000;

/** For a browser, which the session cookie signs in. Programs use `httpTransport`, which asks a coordinator for proof. */
export function fetchTransport(url: string): Transport {
  return {
    url,
    async json(route, input) {
      const timeout = AbortSignal.timeout(timeoutMs);
      const signal = input.signal ? AbortSignal.any([input.signal, timeout]) : timeout;
      const response = await send(url, route, input, signal);
      if (response.status === 204) return undefined;
      return response.json();
    },
    async bytes(route, input) {
      const { status, headers, body } = await send(url, route, input, input.signal ?? null);
      if (status === 204 || body === null) return null;
      return { header: (name) => headers.get(name), bytes: chunksOf(body, url, input.signal) };
    },
  };
}

async function send(url: string, route: RouteName, input: CallInput, signal: AbortSignal | null): Promise<Response> {
  const response = await reach(url, route, input, signal);
  if (response.ok) return response;
  throw errorFromProblem(readProblem(response.status, await response.text()));
}

async function reach(
  url: string,
  route: RouteName,
  { signal: own, ...input }: CallInput,
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
  } catch (cause) {
    // the caller's own doing is not the coordinator's absence
    if (own?.aborted) throw cause;
    throw coordinatorUnreachable(url, cause);
  }
}

/** Heeds the signal here once more: what fetch itself keeps of it may be collected while a long answer is read. */
async function* chunksOf(
  body: ReadableStream<Uint8Array>,
  url: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const stop = (): void => void reader.cancel(signal?.reason).catch(() => undefined); // it broke by itself
  signal?.addEventListener("abort", stop);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      signal?.throwIfAborted();
      if (done) return;
      yield value;
    }
  } catch (error) {
    // a connection that ends in the middle is the coordinator's absence, and no defect
    throw error instanceof TypeError && !signal?.aborted ? coordinatorUnreachable(url, error) : error;
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}
