import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { authenticate } from "./authenticate.ts";
import { authorize, loadObject } from "./authorize.ts";
import { check } from "./check.ts";
import type { ServeDeps } from "./deps.ts";
import { createGuard } from "./guard.ts";
import { timeFor } from "./in-time.ts";
import { createLifeSigns } from "./life-signs.ts";
import type { OpenApiDocument } from "./openapi-document.ts";
import { openApiDocument } from "./openapi.ts";
import { readJsonBody, throwAway } from "./read-body.ts";
import { problemResponse, Refusal, refusalOf } from "./refusal.ts";
import { alreadySent, type AnyCall, type Route, withParameters } from "./route.ts";
import { routes } from "./routes.ts";
import { createStanding, type Stay } from "./standing.ts";
import { whenClosed } from "./when-closed.ts";

const defaultBodyLimit = 1024 * 1024;
const defaultPollSignMs = 15_000;
/** Of requests that met no route: what they say is anybody's text, and no label. */
const nowhere = ["any", "none"] as const;
const nobody: AnyCall["principal"] = { kind: "enrolment", subject: "", label: null, hash: "" };

/** The table of routes as an HTTP application. Everything that is not in the table is refused. */
export function createApp(deps: ServeDeps, table: readonly Route[] = routes): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  const guard = createGuard(deps.publicUrls);
  const standing = createStanding(deps);
  const lifeSigns = createLifeSigns({ everyMs: deps.pollSignMs ?? defaultPollSignMs, headers: alwaysHeaders });
  let made: OpenApiDocument | null = null;
  const document = (): OpenApiDocument => (made ??= openApiDocument(table, deps.version));
  app.use("*", async (c, next) => {
    const refused = guard(c.req.method, c.env.incoming.headers);
    if (refused) {
      c.res = problemResponse(refused.problem, alwaysHeaders);
      deps.metrics.seeRequest(...nowhere, c.res.status, 0);
    } else await next();
    if (c.res.status >= 400) await throwAway(c.env.incoming);
  });
  for (const row of table) {
    app.on(row.method, servedPath(row), async (c) => {
      const from = performance.now();
      const answer = await respond(
        row,
        { params: c.req.param(), url: c.req.url, document, standing, lifeSigns, ...c.env },
        deps,
      );
      deps.metrics.seeRequest(row.method, row.path, answer.status, (performance.now() - from) / 1000);
      return answer;
    });
  }
  app.notFound((c) => {
    const answer = answerError(unrouted(c.req.method, c.req.path, table), c.req.path, deps);
    deps.metrics.seeRequest(...nowhere, answer.status, 0);
    return answer;
  });
  app.onError((error, c) => answerError(error, `${c.req.method} ${c.req.path}`, deps));
  return app;
}

export function servedPath({ path }: Route): string {
  return withParameters(path, (name, slashes) => (slashes ? `:${name}{[\\s\\S]+}` : `:${name}`));
}

/** Set on every answer: nothing here is to be framed, sniffed or kept. */
const alwaysHeaders = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "x-frame-options": "DENY",
};

type Asked = Pick<HttpBindings, "incoming" | "outgoing"> &
  Pick<AnyCall, "params" | "document" | "standing" | "lifeSigns"> & { url: string };

async function respond(
  row: Route,
  { params, url, document, standing, lifeSigns, incoming, outgoing }: Asked,
  deps: ServeDeps,
): Promise<Response> {
  let stay: Stay | null = null;
  try {
    const open = "open" in row.rule;
    const { authorization } = incoming.headers;
    const inTime = timeFor(row.recordMs, (fault) => deps.onDefect(fault, `${row.method} ${row.path}, late`));
    const principal = open ? nobody : await inTime(authenticate(authorization, deps));
    stay = standing.enter(open ? undefined : authorization, principal);
    authorize(row.rule, principal);
    const query = readQuery(row, url);
    if (row.headers) check(row.headers, pick(incoming.headers, Object.keys(row.headers.shape)), "header");
    const object = await loadObject(row.rule, principal, params, deps);
    const body = await readBody(row, incoming);
    // it may have been long in coming
    if (stay.refused) throw stay.refused;
    // HTTP/2 is not served: outgoing is a ServerResponse
    const call = {
      deps,
      principal,
      params,
      headers: incoming.headers,
      query,
      body,
      object,
      incoming,
      outgoing,
      document,
      standing,
      lifeSigns,
      stay,
    } as AnyCall;
    cutOffWhenRefused(stay, outgoing);
    const answer = await inTime(row.handle(call));
    for (const [name, value] of Object.entries(alwaysHeaders))
      if (!answer.headers.has(name)) answer.headers.set(name, value);
    return answer;
  } catch (error) {
    const answer = answerError(error, `${row.method} ${row.path}`, deps);
    if (!outgoing.headersSent) return answer;
    // the status is out already: an answer that breaks off is not taken for one
    outgoing.destroy();
    return alreadySent();
  } finally {
    if (stay) leaveAtTheEnd(stay, outgoing);
  }
}

/** An answer that is being written, such as a stream of events, is for one who may still read it. */
function cutOffWhenRefused(stay: Stay, outgoing: HttpBindings["outgoing"]): void {
  stay.whenRefused(() => {
    if (outgoing.headersSent && !outgoing.writableEnded) outgoing.destroy();
  });
}

function leaveAtTheEnd(stay: Stay, outgoing: HttpBindings["outgoing"]): void {
  const goesOn = outgoing.headersSent && !outgoing.writableEnded && !outgoing.destroyed;
  if (goesOn) whenClosed(outgoing, stay.leave);
  else stay.leave();
}

function answerError(error: unknown, where: string, deps: ServeDeps): Response {
  const refusal = refusalOf(error);
  if (refusal.problem.status >= 500) deps.onDefect(error, where);
  return problemResponse(refusal.problem, { ...alwaysHeaders, ...refusal.headers });
}

async function readBody(row: Route, incoming: HttpBindings["incoming"]): Promise<unknown> {
  if (row.method === "get" || row.raw) return undefined;
  const value = await readJsonBody(incoming, row.bodyLimit ?? defaultBodyLimit);
  if (row.body) return check(row.body, value, "body");
  const empty = value === undefined || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
  if (!empty)
    throw new Refusal(400, "DROVER-API-006", "This route takes no body.", {
      faults: [{ path: "body", message: "not expected" }],
    });
  return undefined;
}

function readQuery(row: Route, url: string): unknown {
  const given = new URL(url).searchParams;
  const seen: Record<string, string> = Object.create(null);
  for (const [name, value] of given) {
    if (name in seen)
      throw new Refusal(400, "DROVER-API-006", `query.${name} is given twice.`, {
        faults: [{ path: `query.${name}`, message: "given twice" }],
      });
    seen[name] = value;
  }
  if (row.query) return check(row.query, { ...seen }, "query");
  const first = Object.keys(seen)[0];
  if (first === undefined) return undefined;
  throw new Refusal(400, "DROVER-API-006", `query.${first}: unknown field`, {
    faults: [{ path: `query.${first}`, message: "unknown field" }],
  });
}

function pick(headers: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.filter((name) => headers[name] !== undefined).map((name) => [name, headers[name]]));
}

function unrouted(method: string, path: string, table: readonly Route[]): Refusal {
  const methods = table.filter((row) => matches(row.path, path)).map((row) => row.method.toUpperCase());
  if (methods.length === 0) {
    return new Refusal(404, "DROVER-API-007", `There is no ${path.slice(0, 200)} here.`, {
      next: "GET /docs lists every route.",
    });
  }
  return new Refusal(405, "DROVER-API-008", `${path.slice(0, 200)} does not take ${method}.`, {
    headers: { allow: methods.join(", ") },
  });
}

function matches(pattern: string, path: string): boolean {
  const [want, have] = [pattern.split("/"), path.split("/")];
  const long = pattern.endsWith("*}") && have.length > want.length;
  return (
    (long || want.length === have.length) &&
    want.every((part, at) => (part.startsWith("{") ? have[at] !== "" : part === have[at]))
  );
}
