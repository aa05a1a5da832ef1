import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { contracts } from "../wire/contracts.ts";
import { formatOrigin } from "../wire/proof.ts";
import { fillPath } from "../wire/transport.ts";
import { type Api, type ApiInput, createApi } from "./api.ts";
import { authenticate } from "./authenticate.ts";
import { type BodyMemory, createBodyMemory, type AcquireBodyMemory } from "./bodies/body-memory.ts";
import type { LargeBody } from "./bodies/large-bodies.ts";
import { checkByContract } from "./check-by-contract.ts";
import { readCredential } from "./credential.ts";
import type { ServeDeps, SystemDeps } from "./deps.ts";
import { createGuard, isLoopbackAddress } from "./guard.ts";
import { createRecordDeadline } from "./record-deadline.ts";
import { createKeepalives, type Keepalives } from "./keepalive.ts";
import { createMcpEndpoint } from "./mcp-endpoint.ts";
import { type Admission, type AdmitRequest, createRequestLimiter, runnerLimits } from "./request-limiter.ts";
import type { OpenApiDocument } from "./openapi-document.ts";
import { buildOpenApiDocument } from "./openapi.ts";
import { createPacing, type Pace } from "./pacing.ts";
import { readJsonBody, discardBody, type ReadBodyOptions } from "./bodies/read-body.ts";
import { readBytes } from "./read-bytes.ts";
import { callerDisconnected, CallerWatch } from "./caller-watch.ts";
import { Refusal } from "./refusal.ts";
import { alreadySent, type RenderedResponse, toResponse } from "./rendered-response.ts";
import { securityHeaders, render, renderError, renderRefusal } from "./render.ts";
import type { Route } from "./route.ts";
import { routes } from "./routes.ts";
import { needsNoToken, type Principal, getSubject } from "./rule.ts";
import { createServeDirectly, type ServeDirectly } from "./serve-directly.ts";
import { sendBackup } from "./send-backup.ts";
import { createSharedDeflate, type SharedDeflate } from "./shared-deflate.ts";
import { createTokenWatch, type TokenWatch, type Watch } from "./token-watch.ts";
import { createDashboard } from "./dashboard.ts";
import { whenClosed } from "./when-closed.ts";

const defaultBodyLimit = 1024 * 1024;
const defaultPollKeepaliveMs = 15_000;
const defaultBackupKeepaliveMs = 10_000;
/** Metric labels for requests without a route. Their method and path are arbitrary text and must not become labels. */
const unroutedLabels = ["any", "none"] as const;
/** Stands in for the caller of a route that needs no token. The rules of all other routes refuse an enrolment. */
const anonymous: Principal = { kind: "enrolment", subject: "", label: null, hash: "" };

/** What all requests share, such as the limits. */
interface RequestServices {
  deps: ServeDeps;
  api: Api;
  tokenWatch: TokenWatch;
  keepalives: Keepalives;
  admitRequest: AdmitRequest;
  /** Runners have their own limits, because each of them holds a poll open. */
  admitRunnerRequest: AdmitRequest;
  pace: Pace;
  acquireBodyMemory: AcquireBodyMemory;
  deflate: SharedDeflate;
}

export interface App extends Hono<{ Bindings: HttpBindings }> {
  /** A server with Node's request and response calls this first, and passes the request to the router if it returns false. */
  serveDirectly?: ServeDirectly;
}

/** Serves the API over HTTP and the dashboard under /ui/. Refuses everything that is not in the route table. */
export function createApp(deps: ServeDeps, routeTable: readonly Route<SystemDeps>[] = routes): App {
  const app = new Hono<{ Bindings: HttpBindings }>();
  const guard = createGuard(deps.publicUrls);
  const tokenWatch = createTokenWatch(deps);
  const keepalives = createKeepalives({
    everyMs: deps.keepaliveMs ?? defaultPollKeepaliveMs,
    headers: securityHeaders,
  });
  let cached: OpenApiDocument | null = null;
  const getOpenApiDocument = (): OpenApiDocument => (cached ??= buildOpenApiDocument(routeTable, deps));
  const system: SystemDeps = {
    ...deps,
    recheckTokens: tokenWatch.recheck,
    pollSilenceMs: keepalives.silenceMs,
    getOpenApiDocument,
    handleMcp: createMcpEndpoint(() => services.api, deps),
  };
  const api = createApi(system, routeTable, checkByContract);
  const admitRequest = createRequestLimiter(deps.requestLimits);
  const services: RequestServices = {
    deps,
    api,
    tokenWatch,
    keepalives,
    admitRequest,
    admitRunnerRequest: createRequestLimiter(runnerLimits),
    acquireBodyMemory: createBodyMemory(deps.requestLimits?.bodyBytes),
    pace: createPacing(),
    deflate: createSharedDeflate(),
  };
  app.use("*", async (c, next) => {
    const refused = guard(c.req.method, c.env.incoming.headers);
    if (refused) {
      c.res = renderRefusal(refused);
      deps.metrics.observeRequest(...unroutedLabels, c.res.status, 0);
    } else await next();
    if (c.res.status >= 400) await discardBody(c.env.incoming);
  });
  for (const route of routeTable) {
    app.on(route.method, toRouterPath(route), async (c) => {
      const { incoming, outgoing } = c.env;
      return toResponse(await respond(route, { params: c.req.param(), url: c.req.url, incoming, outgoing }, services));
    });
  }
  const serveDashboard = createDashboard(deps.webDirectory);
  for (const path of ["/ui", "/ui/*"])
    app.get(path, (c) => serveDashboard(c.req.path, c.req.header("accept-encoding")));
  app.notFound((c) => {
    const response = toResponse(
      renderError(refuseUnrouted(c.req.method, c.req.path, routeTable), c.req.path, deps.onDefect),
    );
    deps.metrics.observeRequest(...unroutedLabels, response.status, 0);
    return response;
  });
  app.onError((error, c) => toResponse(renderError(error, `${c.req.method} ${c.req.path}`, deps.onDefect)));
  const serveDirectly = createServeDirectly(
    routeTable,
    guard,
    (route, incoming, outgoing) => respond(route, { params: noParams, url: route.path, incoming, outgoing }, services),
    deps.onDefect,
  );
  return Object.assign(app, { serveDirectly });
}

/** Converts a path such as `/runs/{run_id}` to the router's syntax. */
export function toRouterPath({ path }: Pick<Route, "path">): string {
  return fillPath(path, (name, slashes) => (slashes ? `:${name}{[\\s\\S]+}` : `:${name}`));
}

interface HttpExchange {
  params: Readonly<Record<string, string>>;
  url: string;
  incoming: IncomingMessage;
  outgoing: ServerResponse;
}

const noParams = {};

async function respond(
  route: Route<SystemDeps>,
  exchange: HttpExchange,
  services: RequestServices,
): Promise<RenderedResponse> {
  const startedAt = performance.now();
  const rendered = await checkAndCall(route, exchange, services);
  const seconds = (performance.now() - startedAt) / 1000;
  services.deps.metrics.observeRequest(route.method, route.path, rendered.status, seconds);
  return rendered;
}

async function checkAndCall(
  route: Route<SystemDeps>,
  exchange: HttpExchange,
  services: RequestServices,
): Promise<RenderedResponse> {
  const { incoming, outgoing } = exchange;
  const { deps, tokenWatch, keepalives } = services;
  // A pipeline alone adds six listeners, and each limit below adds one. Node warns above ten.
  outgoing.setMaxListeners(20);
  let watch: Watch | null = null;
  let callerWatch: CallerWatch | null = null;
  let bodyMemory: BodyMemory | null = null;
  let endLightRequest: (() => void) | null = null;
  try {
    const isPublic = needsNoToken(route.rule);
    const credential = isPublic ? undefined : readCredential(incoming.method, incoming.headers, deps.cookieName);
    // Reads weigh more: writes are batched into one commit, but a read can return a lot.
    await services.pace(credential ?? getAddressKey(incoming), route.method === "get" ? 4 : 1);
    const deadline = createRecordDeadline(route.recordTimeoutMs, (error) =>
      deps.onDefect(error, `${route.method} ${route.path}, after its deadline`),
    );
    const principal = isPublic ? anonymous : await deadline(authenticate(credential, deps));
    const caller = getCallerKey(principal, incoming);
    const admission = admit(route, caller, outgoing, services);
    watch = tokenWatch.watch(credential, principal);
    callerWatch = new CallerWatch(watch, outgoing);
    bodyMemory = services.acquireBodyMemory(caller);
    if (!route.sendsKeepalives) endLightRequest = deps.heavyTurns.startLightRequest();
    const openLarge = (): LargeBody => {
      endLightRequest?.();
      return deps.largeBodies.open(caller, route.name);
    };
    const input = buildInput(route, exchange, {
      callerWatch,
      withDeadline: deadline,
      memory: bodyMemory,
      openLarge,
      checkUnread: () => admission?.checkUnread(),
    });
    const work = async (): Promise<RenderedResponse> => {
      const reply = await services.api.call(principal, route.name, input);
      return limitUnread(await renderReply(reply, exchange, callerWatch!, services), admission, exchange);
    };
    return await (route.sendsKeepalives ? keepalives.sendDuring(outgoing, work) : work());
  } catch (error) {
    const refused = renderError(error, `${route.method} ${route.path}`, deps.onDefect);
    if (!outgoing.headersSent) return refused;
    // The status has been sent. Closing the connection is the only remaining way to signal the failure.
    outgoing.destroy();
    return alreadySent;
  } finally {
    endLightRequest?.();
    bodyMemory?.release();
    callerWatch?.stop();
    if (watch) stopWhenSent(watch, outgoing);
  }
}

/** Returns null for a route without a limit on open requests. */
function admit(
  { path, rule }: Route<SystemDeps>,
  caller: string,
  outgoing: ServerResponse,
  { admitRequest, admitRunnerRequest }: RequestServices,
): Admission | null {
  if (path.startsWith("/runner/")) return admitRunnerRequest(caller, outgoing);
  return path === "/health" ? null : admitRequest(caller, outgoing, { isAnonymous: needsNoToken(rule) });
}

/** Withholds a large response if the caller has too many unread bytes already. */
function limitUnread(
  rendered: RenderedResponse,
  admission: Admission | null,
  { incoming, outgoing }: HttpExchange,
): RenderedResponse {
  const refusal = admission?.admitResponse(Buffer.byteLength(rendered.body ?? "")) ?? null;
  if (refusal === null) return rendered;
  if (incoming.method === "GET" || incoming.method === "HEAD") throw refusal;
  // A refusal would say that the request changed nothing.
  outgoing.destroy();
  return alreadySent;
}

/** Limits apply to all tokens of a subject together. Callers without a token are limited by address. */
function getCallerKey(principal: Principal, incoming: IncomingMessage): string {
  return principal === anonymous ? getAddressKey(incoming) : `of ${getSubject(principal)}`;
}

/** All loopback addresses count as one caller, because a local program can use any of them. */
function getAddressKey({ socket: { remoteAddress = "" } }: IncomingMessage): string {
  return isLoopbackAddress(remoteAddress.replace(/^::ffff:/, "")) ? "from this machine" : `from ${remoteAddress}`;
}

interface RequestContext extends Pick<ReadBodyOptions, "memory" | "openLarge"> {
  callerWatch: CallerWatch;
  withDeadline: NonNullable<ApiInput["withDeadline"]>;
  /** Throws if the caller has too many unread bytes. */
  checkUnread(): void;
}

/** Most parts are read lazily, so an unauthorized caller is refused before any work is done. */
function buildInput(
  { name, method, bodyLimit = defaultBodyLimit }: Route<SystemDeps>,
  { params, url, incoming }: HttpExchange,
  { callerWatch, withDeadline, memory, openLarge, checkUnread }: RequestContext,
): ApiInput {
  const takesBytes = "takesBytes" in contracts[name];
  return {
    params,
    get query() {
      return readQuery(url);
    },
    headers: incoming.headers,
    stream: wantsStream(incoming),
    get localOrigin() {
      return formatOrigin(incoming.socket.localAddress, incoming.socket.localPort);
    },
    withDeadline,
    ...(takesBytes ? { bytes: readBytes(incoming, () => callerWatch.signal) } : {}),
    ...(method === "get" || takesBytes
      ? {}
      : {
          async readBody() {
            const value = await readJsonBody(incoming, { limit: bodyLimit, memory, openLarge });
            // While the body arrived, the token may have been revoked, and earlier requests may have got large responses.
            if (callerWatch.watch.refusal) throw callerWatch.watch.refusal;
            checkUnread();
            return value;
          },
        }),
    get signal() {
      return callerWatch.signal;
    },
  };
}

function renderReply(
  reply: unknown,
  { incoming, outgoing }: HttpExchange,
  callerWatch: CallerWatch,
  services: RequestServices,
): Promise<RenderedResponse> {
  const { deps, tokenWatch } = services;
  const acceptEncoding = String(incoming.headers["accept-encoding"] ?? "");
  return render(reply, {
    outgoing,
    hub: deps.hub,
    acceptEncoding,
    deflate: services.deflate,
    stalledMs: deps.stalledMs,
    onDefect: deps.onDefect,
    sendBackup: ({ backup }) =>
      sendBackup(backup, {
        outgoing,
        headers: securityHeaders,
        acceptEncoding,
        keepaliveMs: deps.keepaliveMs ?? defaultBackupKeepaliveMs,
        async assertAllowed() {
          // The backup contains the signing key. Recheck the token in the record first: another coordinator may have
          // revoked it while the backup was made.
          await tokenWatch.recheck();
          if (callerWatch.watch.refusal) throw callerWatch.watch.refusal;
          callerWatch.signal.throwIfAborted();
        },
      }).catch((error: unknown) => {
        throw isDisconnect(error) ? callerDisconnected() : error;
      }),
  });
}

/** Reports whether a stream failed because its reader disconnected. */
function isDisconnect(error: unknown): boolean {
  const codes = ["ERR_STREAM_PREMATURE_CLOSE", "ERR_STREAM_DESTROYED", "ECONNRESET", "EPIPE"];
  return error instanceof Error && codes.includes(String(Reflect.get(error, "code")));
}

/** A streaming response keeps its token watched until it is closed. */
function stopWhenSent(watch: Watch, outgoing: ServerResponse): void {
  const isStreaming = outgoing.headersSent && !outgoing.writableEnded && !outgoing.destroyed;
  if (isStreaming) whenClosed(outgoing, watch.stop);
  else watch.stop();
}

/** Only GET can stream: a HEAD request would wait for a stream that never ends. */
function wantsStream({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && /(?:^|,)\s*text\/event-stream\s*(?:[;,]|$)/i.test(headers.accept ?? "");
}

function readQuery(url: string): Record<string, string> {
  if (!url.includes("?")) return {};
  const parameters: Record<string, string> = Object.create(null);
  for (const [name, value] of new URL(url).searchParams) {
    if (name in parameters)
      throw new Refusal(400, "DROVER-API-006", `query.${name} occurs more than once.`, {
        faults: [{ path: `query.${name}`, message: "occurs more than once" }],
      });
    parameters[name] = value;
  }
  return { ...parameters };
}

function refuseUnrouted(method: string, path: string, routeTable: readonly Route<SystemDeps>[]): Refusal {
  const methods = routeTable.filter((route) => matches(route.path, path)).map((route) => route.method.toUpperCase());
  if (methods.length === 0) {
    return new Refusal(404, "DROVER-API-007", `There is no route ${path.slice(0, 200)}.`, {
      next: "GET /docs lists every route.",
    });
  }
  return new Refusal(405, "DROVER-API-008", `${path.slice(0, 200)} does not support ${method}.`, {
    headers: { allow: methods.join(", ") },
  });
}

function matches(pattern: string, path: string): boolean {
  const [expected, actual] = [pattern.split("/"), path.split("/")];
  const hasExtraParts = pattern.endsWith("*}") && actual.length > expected.length;
  return (
    (hasExtraParts || expected.length === actual.length) &&
    expected.every((part, index) => (part.startsWith("{") ? actual[index] !== "" : part === actual[index]))
  );
}
