import type { RouteName } from "./contracts.ts";
import { type CallInput, fillPath } from "./transport.ts";

/** An HTTP request for a route, without address and credentials. */
export interface WireRequest {
  method: string;
  /** Includes the query. */
  path: string;
  headers: Record<string, string>;
  body: string | undefined;
}

export function buildRequest(
  route: RouteName,
  { params = {}, query, headers, body, stream }: Omit<CallInput, "signal">,
): WireRequest {
  const [method = "", template = ""] = route.split(" ");
  const path = fillPath(template, (name, allowsSlashes) => encodeParameter(params[name] ?? "", allowsSlashes));
  const payload = method === "POST" ? (body ?? {}) : body;
  return {
    method,
    path: `${path}${formatQuery(query)}`,
    headers: {
      accept: stream ? "text/event-stream" : "*/*",
      ...(payload === undefined ? {} : { "content-type": "application/json" }),
      ...Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name, String(value)])),
    },
    body: payload === undefined ? undefined : JSON.stringify(payload),
  };
}

function encodeParameter(value: string, allowsSlashes: boolean): string {
  return allowsSlashes ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value);
}

function formatQuery(query: CallInput["query"] = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  return search.size === 0 ? "" : `?${search.toString()}`;
}
