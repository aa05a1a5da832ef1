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
import { createRequestLimiter, type AdmitRequest, runnerLimits } from "./request-limiter.ts";
import type { OpenApiDocument } from "./openapi-document.ts";
import { buildOpenApiDocument } from "./openapi.ts";
import { createPacing, type Pace } from "./pacing.ts";
import { readJsonBody, discardBody, type ReadBodyOptions } from "./bodies/read-body.ts";
import { readBytes } from "./read-bytes.ts";
import { callerDisconnected, Presence } from "./presence.ts";
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
const anonymous: Principal = { kind: "enrolment", subject: "", label: null, hash: "" };

/** Shared by all requests. */
interface Server {
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
  /** Tried first by a server that has Node's own request and response. */
  serveDirectly?: ServeDirectly;
}

/** Serves the API over HTTP and the dashboard under /ui/. Refuses everything that is not in the route table. */
export function createApp(deps: ServeDeps, table: readonly Route<SystemDeps>[] = routes): App {
  const app = new Hono<{ Bindings: HttpBindings }>();
  const guard = createGuard(deps.publicUrls);
  const tokenWatch = createTokenWatch(deps);
  const keepalives = createKeepalives({
    everyMs: deps.keepaliveMs ?? defaultPollKeepaliveMs,
    headers: securityHeaders,
  });
  let cached: OpenApiDocument | null = null;
  const document = (): OpenApiDocument => (cached ??= buildOpenApiDocument(table, deps));
  const system: SystemDeps = {
    ...deps,
    recheckTokens: tokenWatch.recheck,
    pollSilenceMs: keepalives.silenceMs,
    document,
    handleMcp: createMcpEndpoint(() => server.api, deps),
  };
  const api = createApi(system, table, checkByContract);
  const admitRequest = createRequestLimiter(deps.requestLimits);
  const server: Server = {
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
  for (const row of table) {
    app.on(row.method, servedPath(row), async (c) => {
      const { incoming, outgoing } = c.env;
      return toResponse(await respond(row, { params: c.req.param(), url: c.req.url, incoming, outgoing }, server));
    });
  }
  const web = createDashboard(deps.webDirectory);
  for (const path of ["/ui", "/ui/*"]) app.get(path, (c) => web(c.req.path, c.req.header("accept-encoding")));
  app.notFound((c) => {
    const response = toResponse(
      renderError(refuseUnrouted(c.req.method, c.req.path, table), c.req.path, deps.onDefect),
    );
    deps.metrics.observeRequest(...unroutedLabels, response.status, 0);
    return response;
  });
  app.onError((error, c) => toResponse(renderError(error, `${c.req.method} ${c.req.path}`, deps.onDefect)));
  const serveDirectly = createServeDirectly(
    table,
    guard,
    (row, incoming, outgoing) => respond(row, { params: noParams, url: row.path, incoming, outgoing }, server),
    deps.onDefect,
  );
  return Object.assign(app, { serveDirectly });
}

export function servedPath({ path }: Pick<Route, "path">): string {
  return fillPath(path, (name, slashes) => (slashes ? `:${name}{[\\s\\S]+}` : `:${name}`));
}

interface Http {
  params: Readonly<Record<string, string>>;
  url: string;
  incoming: IncomingMessage;
  outgoing: ServerResponse;
}

const noParams = {};

async function respond(row: Route<SystemDeps>, http: Http, server: Server): Promise<RenderedResponse> {
  const startedAt = performance.now();
  const rendered = await checkAndCall(row, http, server);
  const seconds = (performance.now() - startedAt) / 1000;
  server.deps.metrics.observeRequest(row.method, row.path, rendered.status, seconds);
  return rendered;
}

async function checkAndCall(row: Route<SystemDeps>, http: Http, server: Server): Promise<RenderedResponse> {
  const { incoming, outgoing } = http;
  const { deps, tokenWatch, keepalives } = server;
  // A pipeline alone adds six listeners, and each of the limits below adds one.
  outgoing.setMaxListeners(20);
  let watch: Watch | null = null;
  let presence: Presence | null = null;
  let bodyMemory: BodyMemory | null = null;
  let leaveLight: (() => void) | null = null;
  try {
    const open = needsNoToken(row.rule);
    const credential = open ? undefined : readCredential(incoming.method, incoming.headers, deps.cookieName);
    // Reads weigh more: writes are batched into one commit, but a read can return a lot.
    await server.pace(credential ?? getAddress(incoming), row.method === "get" ? 4 : 1);
    const deadline = createRecordDeadline(row.recordMs, (error) =>
      deps.onDefect(error, `${row.method} ${row.path}, after its deadline`),
    );
    const principal = open ? anonymous : await deadline(authenticate(credential, deps));
    const caller = getCaller(principal, incoming);
    if (row.path.startsWith("/runner/")) server.admitRunnerRequest(caller, outgoing);
    else if (row.path !== "/health") server.admitRequest(caller, outgoing, { isStranger: open });
    watch = tokenWatch.watch(credential, principal);
    presence = new Presence(watch, outgoing);
    bodyMemory = server.acquireBodyMemory(caller);
    if (!row.held) leaveLight = deps.heavyTurns.enterLight();
    const openLarge = (): LargeBody => {
      leaveLight?.();
      return deps.largeBodies.open(caller, row.name);
    };
    const input = buildInput(row, http, { presence, withDeadline: deadline, memory: bodyMemory, openLarge });
    const work = async (): Promise<RenderedResponse> =>
      renderReply(await server.api.call(principal, row.name, input), http, presence!, server);
    return await (row.held ? keepalives.during(outgoing, work) : work());
  } catch (error) {
    const refused = renderError(error, `${row.method} ${row.path}`, deps.onDefect);
    if (!outgoing.headersSent) return refused;
    // The status has been sent. Closing the connection is the only remaining way to signal the failure.
    outgoing.destroy();
    return alreadySent;
  } finally {
    leaveLight?.();
    bodyMemory?.release();
    presence?.end();
    if (watch) stopWhenSent(watch, outgoing);
  }
}

/** Limits apply per subject, over all of its tokens; without a token, per address. */
function getCaller(principal: Principal, incoming: IncomingMessage): string {
  return principal === anonymous ? getAddress(incoming) : `of ${getSubject(principal)}`;
}

/** All loopback addresses count as one caller, because a local program can use any of them. */
function getAddress({ socket: { remoteAddress = "" } }: IncomingMessage): string {
  return isLoopbackAddress(remoteAddress.replace(/^::ffff:/, "")) ? "from this machine" : `from ${remoteAddress}`;
}

interface RequestContext extends Pick<ReadBodyOptions, "memory" | "openLarge"> {
  presence: Presence;
  withDeadline: NonNullable<ApiInput["withDeadline"]>;
}

/** Most parts are read lazily, so an unauthorized caller is refused before any work is done. */
function buildInput(
  { name, method, bodyLimit = defaultBodyLimit }: Route<SystemDeps>,
  { params, url, incoming }: Http,
  { presence, withDeadline, memory, openLarge }: RequestContext,
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
    ...(takesBytes ? { bytes: readBytes(incoming, () => presence.signal) } : {}),
    ...(method === "get" || takesBytes
      ? {}
      : {
          async readBody() {
            const value = await readJsonBody(incoming, { limit: bodyLimit, memory, openLarge });
            // The token may have been revoked while the body arrived.
            if (presence.watch.refused) throw presence.watch.refused;
            return value;
          },
        }),
    get signal() {
      return presence.signal;
    },
  };
}

function renderReply(
  reply: unknown,
  { incoming, outgoing }: Http,
  presence: Presence,
  server: Server,
): Promise<RenderedResponse> {
  const { deps, tokenWatch } = server;
  const acceptEncoding = String(incoming.headers["accept-encoding"] ?? "");
  return render(reply, {
    outgoing,
    hub: deps.hub,
    acceptEncoding,
    deflate: server.deflate,
    stalledMs: deps.stalledMs,
    onDefect: deps.onDefect,
    sendBackup: ({ making }) =>
      sendBackup(making, {
        outgoing,
        headers: securityHeaders,
        acceptEncoding,
        keepaliveMs: deps.keepaliveMs ?? defaultBackupKeepaliveMs,
        async assertAllowed() {
          // The backup contains the signing key. Do not send it if the token was revoked meanwhile, on any coordinator.
          await tokenWatch.recheck();
          if (presence.watch.refused) throw presence.watch.refused;
          presence.signal.throwIfAborted();
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

function refuseUnrouted(method: string, path: string, table: readonly Route<SystemDeps>[]): Refusal {
  const methods = table.filter((row) => matches(row.path, path)).map((row) => row.method.toUpperCase());
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
