import type { IncomingMessage, ServerResponse } from "node:http";
import { discardBody } from "./bodies/read-body.ts";
import type { Guard } from "./guard.ts";
import { alreadySent, type RenderedResponse } from "./rendered-response.ts";
import type { Route } from "./route.ts";

/** Serves a request without creating a web `Request` and `Response`. Returns false if the router must serve it. */
export type ServeDirectly = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;

/** The routes that submit, claim and report. They get nearly all requests of a busy coordinator. */
const directRoutes: ReadonlySet<string> = new Set(["POST /runs", "POST /runner/poll", "POST /runner/report"]);

/** How many different Host headers to remember as valid. */
const maxHosts = 100;

/**
 * Creating the router's objects would take a tenth of the time of such a request. The router calls the same `respond`,
 * so the checks are the same. Requests for other routes, and those that the guard refuses, go to the
 * router, which builds the response.
 */
export function createServeDirectly<R extends Pick<Route, "name" | "path">>(
  routes: readonly R[],
  guard: Guard,
  respond: (route: R, incoming: IncomingMessage, outgoing: ServerResponse) => Promise<RenderedResponse>,
  onDefect: (error: unknown, where: string) => void,
): ServeDirectly {
  const routesByPath = new Map(routes.filter(({ name }) => directRoutes.has(name)).map((route) => [route.path, route]));
  const validHosts = new Set<string>();
  return (incoming, outgoing) => {
    // A path with a query matches no route here.
    const route = incoming.method === "POST" ? routesByPath.get(incoming.url ?? "") : undefined;
    if (route === undefined || !isValidHost(incoming.headers.host) || guard("POST", incoming.headers) !== null)
      return false;
    serve(route, incoming, outgoing).catch((error: unknown) => {
      onDefect(error, route.name);
      outgoing.destroy();
    });
    return true;
  };

  async function serve(route: R, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const rendered = await respond(route, incoming, outgoing);
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
