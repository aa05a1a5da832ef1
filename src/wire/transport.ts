import type { RouteName } from "./contracts.ts";

/** The address of a client that calls the API in its own process. */
export const inProcessUrl = "this process";

/** How a client calls the API: over HTTP or in the same process. */
export interface Transport {
  /** The coordinator's address to show in messages. */
  readonly url: string;
  /** Resolves with the parsed JSON; undefined if the response has no body. */
  json(route: RouteName, input: CallInput): Promise<unknown>;
  /** Resolves with the response's bytes; null if it has no body. */
  bytes(route: RouteName, input: CallInput): Promise<BytesResponse | null>;
}

/** The untyped form of a route's `Input`. */
export interface CallInput {
  params?: Readonly<Record<string, string>> | undefined;
  query?: Readonly<Record<string, unknown>> | undefined;
  headers?: Readonly<Record<string, unknown>> | undefined;
  body?: unknown;
  /** Requests events as a stream instead of a page. */
  stream?: boolean;
  signal?: AbortSignal | undefined;
}

export interface BytesResponse {
  header(name: string): string | null;
  /** Throws if the response is cut off. */
  bytes: AsyncIterable<Uint8Array>;
}

/** A request body of bytes. `size` is its Content-Length; null if there is none. */
export interface SizedBytes {
  size: number | null;
  bytes: AsyncIterable<Uint8Array>;
}

/** Replaces each `{parameter}` of a route's path with what `write` returns. */
export function fillPath(path: string, write: (name: string, allowsSlashes: boolean) => string): string {
  return path.replaceAll(/\{(\w+)(\*?)\}/g, (_, name: string, star: string) => write(name, star === "*"));
}
