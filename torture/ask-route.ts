import type { Route } from "../src/serve/route.ts";
import { fillPath } from "../src/wire/transport.ts";
import { rawCall } from "../test/http-call.ts";

/** Counts and violations so far. */
export interface Seen {
  requests: number;
  ended: number;
  enrolled: number;
  cutMs: number[];
  broken: string[];
}

/** Values for the path parameters of routes. */
export type Ids = Readonly<Record<string, string>>;

export async function ask(url: string, row: Route, ids: Ids, token: string | null, seen: Seen): Promise<number> {
  const path = fillPath(row.path, (key) => encodeURIComponent(ids[key] ?? "x"));
  // An invalid body, so that the request changes nothing.
  const body = row.method === "get" ? {} : { body: '{"unexpected":true}' };
  const headers = { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) };
  seen.requests += 1;
  return (await rawCall(url, { method: row.method.toUpperCase(), path, headers, ...body })).status;
}
