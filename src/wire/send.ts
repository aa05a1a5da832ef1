import { HostError } from "../model/errors.ts";
import type { RouteName } from "./contracts.ts";
import { errorFromProblem, readProblem } from "./problem.ts";
import { type CallInput, fillPath, type Transport } from "./transport.ts";

export type Fetch = typeof globalThis.fetch;

export interface Target {
  /** e.g. http://127.0.0.1:8765 */
  url: string;
  token: string | null;
  fetch: Fetch;
}

/** For an answer in JSON. One of bytes may take as long as it takes. */
const timeoutMs = 10_000;

/** Over HTTP. Rejects with a RequestError where a call was refused, with a HostError where nobody answered. */
export function httpTransport(target: Target): Transport {
  return {
    url: target.url,
    async json(route, input) {
      const timeout = AbortSignal.timeout(timeoutMs);
      const signal = input.signal ? AbortSignal.any([input.signal, timeout]) : timeout;
      const response = await send(target, route, input, signal);
      if (response.status === 204) return undefined;
      return response.json();
    },
    async bytes(route, input) {
      const { status, headers, body } = await send(target, route, input, input.signal ?? null);
      if (status === 204 || body === null) return null;
      return { header: (name) => headers.get(name), bytes: chunksOf(body, target.url, input.signal) };
    },
  };
}

async function send(target: Target, route: RouteName, input: CallInput, signal: AbortSignal | null): Promise<Response> {
  const response = await reach(target, route, input, signal);
  if (response.ok) return response;
  throw errorFromProblem(readProblem(response.status, await response.text()));
}

async function reach(
  { url, token, fetch }: Target,
  route: RouteName,
  { params = {}, query, headers, body, stream, signal: own }: CallInput,
  signal: AbortSignal | null,
): Promise<Response> {
  const [method = "", template = ""] = route.split(" ");
  const path = fillPath(template, (name, slashes) => encoded(params[name] ?? "", slashes));
  const sent = method === "POST" ? (body ?? {}) : body;
  try {
    return await fetch(`${url.replace(/\/+$/, "")}${path}${searchOf(query)}`, {
      method,
      headers: {
        accept: stream ? "text/event-stream" : "*/*",
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(sent === undefined ? {} : { "content-type": "application/json" }),
        ...Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name, String(value)])),
      },
      redirect: "error",
      signal,
      ...(sent === undefined ? {} : { body: JSON.stringify(sent) }),
    });
  } catch (cause) {
    // the caller's own doing is not the coordinator's absence
    if (own?.aborted) throw cause;
    throw unreachable(url, cause);
  }
}

/** The signal is heeded here once more: what fetch itself keeps of it may be collected while a long answer is read. */
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
    throw error instanceof TypeError && !signal?.aborted ? unreachable(url, error) : error;
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}

export function unreachable(url: string, cause: unknown): HostError {
  const why =
    cause instanceof Error ? (cause.cause instanceof Error ? cause.cause.message : cause.message) : String(cause);
  return new HostError({
    code: "DROVER-API-023",
    message: `The coordinator at ${url} did not answer: ${why}`,
    next: "Check that it runs (`drover up`) and that DROVER_API_URL is its address.",
    cause,
  });
}

function encoded(value: string, slashes: boolean): string {
  return slashes ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value);
}

function searchOf(query: CallInput["query"] = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  return search.size === 0 ? "" : `?${search.toString()}`;
}
