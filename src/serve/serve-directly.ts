import type { IncomingMessage, ServerResponse } from "node:http";
import { discardBody } from "./bodies/read-body.ts";
import type { Guard } from "./guard.ts";
import { alreadySent, type RenderedResponse } from "./rendered-response.ts";
import type { Route } from "./route.ts";

/** Serves a request that needs no `Request` and `Response` of the web. Returns false if it is for the router. */
export type ServeDirectly = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;

/** Submitting, claiming and reporting: nearly all requests of a busy coordinator. */
const directRoutes: ReadonlySet<string> = new Set(["POST /runs", "POST /runner/poll", "POST /runner/report"]);

/** How many different Host headers to remember as valid. */
const maxHosts = 100;

/**
 * The router's objects cost a tenth of such a request. `respond` is the same as for the router, with all of its checks.
 * Whatever is refused before it, or is not plain, goes to the router, which has the answer.
 */
export function createServeDirectly<R extends Pick<Route, "name" | "path">>(
  table: readonly R[],
  guard: Guard,
  respond: (row: R, incoming: IncomingMessage, outgoing: ServerResponse) => Promise<RenderedResponse>,
  onDefect: (error: unknown, where: string) => void,
): ServeDirectly {
  const rows = new Map(table.filter(({ name }) => directRoutes.has(name)).map((row) => [row.path, row]));
  const validHosts = new Set<string>();
  return (incoming, outgoing) => {
    // A path with a query is in no row.
    const row = incoming.method === "POST" ? rows.get(incoming.url ?? "") : undefined;
    if (row === undefined || !isValidHost(incoming.headers.host) || guard("POST", incoming.headers) !== null)
      return false;
    serve(row, incoming, outgoing).catch((error: unknown) => {
      onDefect(error, row.name);
      outgoing.destroy();
    });
    return true;
  };

  async function serve(row: R, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const rendered = await respond(row, incoming, outgoing);
    if (rendered.status >= 400) await discardBody(incoming);
    if (rendered === alreadySent || outgoing.destroyed) return;
    // The rest of the body would be taken for the next request.
    if (!incoming.readableEnded) outgoing.once("finish", () => incoming.destroy());
    const { status, headers, body } = rendered;
    outgoing.writeHead(status, body === null ? headers : { ...headers, "content-length": Buffer.byteLength(body) });
    outgoing.end(body);
  }

  /** The router refuses a Host that forms no URL. */
  function isValidHost(host: string | undefined): boolean {
    if (host === undefined || validHosts.has(host)) return host !== undefined;
    if (!URL.canParse(`http://${host}/`)) return false;
    if (validHosts.size >= maxHosts) validHosts.clear();
    validHosts.add(host);
    return true;
  }
}
