import { HostError } from "../model/errors.ts";
import { errorFromProblem, readProblem } from "./problem.ts";

export type Fetch = typeof globalThis.fetch;

export interface Target {
  /** e.g. http://127.0.0.1:8765 */
  url: string;
  token: string | null;
  fetch: Fetch;
}

export interface Call {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  query?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
  /** 10 s unless given; null: as long as it takes. */
  timeoutMs?: number | null;
}

const defaultTimeoutMs = 10_000;

/** One request. Rejects with a RequestError where it was refused, with a HostError where nobody answered. */
export async function send(target: Target, call: Call): Promise<Response> {
  const timeoutMs = call.timeoutMs === undefined ? defaultTimeoutMs : call.timeoutMs;
  const limits = [call.signal, timeoutMs === null ? undefined : AbortSignal.timeout(timeoutMs)].filter(
    (one) => one !== undefined,
  );
  const response = await reach(target, call, limits.length === 0 ? null : AbortSignal.any(limits));
  if (response.ok) return response;
  throw errorFromProblem(readProblem(response.status, await response.text()));
}

export async function sendJson<T>(target: Target, call: Call): Promise<T> {
  const response = await send(target, call);
  // the server's answers are made from the same types, and its schemas are tested against them
  return (await response.json()) as T;
}

async function reach(target: Target, call: Call, signal: AbortSignal | null): Promise<Response> {
  try {
    return await target.fetch(address(target.url, call), {
      method: call.method,
      headers: {
        accept: "application/json",
        ...(target.token === null ? {} : { authorization: `Bearer ${target.token}` }),
        ...(call.body === undefined ? {} : { "content-type": "application/json" }),
        ...call.headers,
      },
      redirect: "error",
      signal,
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
    });
  } catch (cause) {
    // the caller's own doing is not the coordinator's absence
    if (call.signal?.aborted) throw cause;
    throw unreachable(target.url, cause);
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

function address(url: string, call: Call): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(call.query ?? {})) {
    if (value !== undefined) query.set(name, typeof value === "object" ? value.join(",") : String(value));
  }
  const text = query.toString();
  return `${url.replace(/\/+$/, "")}${call.path}${text === "" ? "" : `?${text}`}`;
}
