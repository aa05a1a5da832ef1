import type { RouteName } from "./contracts.ts";

/** How a client reaches an API: over HTTP, or in the process that has it. */
export interface Transport {
  /** How messages name the other side. */
  readonly url: string;
  /** The JSON of the answer; undefined for one without a body. */
  json(route: RouteName, input: CallInput): Promise<unknown>;
  /** The bytes of the answer; null for one without a body. */
  bytes(route: RouteName, input: CallInput): Promise<BytesAnswer | null>;
}

/** `Input` of a route without its types. */
export interface CallInput {
  params?: Readonly<Record<string, string>> | undefined;
  query?: Readonly<Record<string, unknown>> | undefined;
  headers?: Readonly<Record<string, unknown>> | undefined;
  body?: unknown;
  /** Events as a stream, not as a page. */
  stream?: boolean;
  signal?: AbortSignal | undefined;
}

export interface BytesAnswer {
  header(name: string): string | null;
  /** As they come; throws where the answer is cut off. */
  bytes: AsyncIterable<Uint8Array>;
}

/** A body of bytes, of a size that is known before. */
export interface SizedBytes {
  size: number | null;
  bytes: AsyncIterable<Uint8Array>;
}

/** A route's path with each parameter as `write` has it. */
export function fillPath(path: string, write: (name: string, slashes: boolean) => string): string {
  return path.replaceAll(/\{(\w+)(\*?)\}/g, (_, name: string, star: string) => write(name, star === "*"));
}
