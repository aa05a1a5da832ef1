import type { Route } from "../src/serve/route.ts";
import { fillPath } from "../src/wire/transport.ts";
import { rawCall } from "../test/http-call.ts";

/** What was asked and found so far. */
export interface Seen {
  asked: number;
  ended: number;
  enrolled: number;
  cutMs: number[];
  broken: string[];
}

/** What the paths of routes are filled in with. */
export type Ids = Readonly<Record<string, string>>;

export async function ask(url: string, row: Route, ids: Ids, token: string | null, seen: Seen): Promise<number> {
  const path = fillPath(row.path, (key) => encodeURIComponent(ids[key] ?? "x"));
  // nothing is changed by it
  const body = row.method === "get" ? {} : { body: '{"unexpected":true}' };
  const headers = { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) };
  seen.asked += 1;
  return (await rawCall(url, { method: row.method.toUpperCase(), path, headers, ...body })).status;
}
