import { chmodSync, rmSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { HostError, RequestError } from "../model/errors.ts";
import type { App } from "./app.ts";
import { limitConnections } from "./limit-connections.ts";
import { disconnectStalled } from "./disconnect-stalled.ts";
import { isLoopbackAddress } from "./guard.ts";
import { Refusal } from "./refusal.ts";
import { renderRefusal } from "./render.ts";

export interface ListenOptions {
  host: string;
  /** 0 picks a free port. */
  port: number;
  authEnabled: boolean;
  /** Path of a Unix socket to listen on as well. An existing one is replaced. */
  socket?: string | null;
  /** Called if the socket cannot be created. The coordinator still listens on its port. */
  onSocketError?: (error: unknown) => void;
  /** Disconnects a client that reads nothing of its response for this long. */
  stalledMs?: number | undefined;
  maxConnections?: number | undefined;
}

const maxConnections = 10_000;

export interface HttpListener {
  url: string;
  port: number;
  /** null if it does not listen on a socket. */
  socket: string | null;
  /** Stops accepting requests and gives open ones `graceMs` to finish. Idempotent. */
  close(graceMs: number): Promise<void>;
}

/** Refuses to listen beyond loopback without auth, which would let anyone on the network run commands here. */
export function refuseOpenWithoutAuth({ host, authEnabled }: Pick<ListenOptions, "host" | "authEnabled">): void {
  if (authEnabled || isLoopbackAddress(host)) return;
  throw new RequestError({
    code: "DROVER-API-025",
    field: "host",
    message: `Without auth, Drover listens only on loopback, not on ${host}.`,
    next: "Enable auth (AUTH_ENABLED), or listen on 127.0.0.1.",
  });
}

/** Rejects invalid addresses, because these are compared with the Origin that browsers send. */
export function checkPublicUrls(publicUrls: readonly string[]): void {
  const invalidUrl = publicUrls.find((url) => !isHttpAddress(url));
  if (invalidUrl === undefined) return;
  throw new RequestError({
    code: "DROVER-USE-001",
    field: "--public-url",
    message: `${JSON.stringify(invalidUrl)} is not an http:// or https:// address.`,
    next: "Use an address with a host name, for example --public-url https://drover.example",
  });
}

function isHttpAddress(url: string): boolean {
  return /^https?:\/\/[^/]/i.test(url) && URL.canParse(url);
}

export async function listen(app: App, options: ListenOptions): Promise<HttpListener> {
  refuseOpenWithoutAuth(options);
  const server = createHttpServer(app, options);
  await bind(server, options);
  // The address of a TCP server is never a string.
  const { port } = server.address() as AddressInfo;
  const socketListener = options.socket ? await tryListenOnSocket(app, options.socket, options) : null;
  let closePromise: Promise<void> | null = null;
  const closeAll = async (graceMs: number): Promise<void> => {
    await Promise.all([close(server, graceMs), socketListener?.close(graceMs)]);
  };
  return {
    url: `http://${toUrlHost(options.host)}:${port}`,
    port,
    socket: socketListener && options.socket ? options.socket : null,
    close: (graceMs) => (closePromise ??= closeAll(graceMs)),
  };
}

async function tryListenOnSocket(
  app: App,
  path: string,
  { onSocketError, stalledMs }: ListenOptions,
): Promise<Pick<HttpListener, "close"> | null> {
  try {
    return await listenOnSocket(app, path, { stalledMs });
  } catch (error) {
    onSocketError?.(error);
    return null;
  }
}

/** Listens only on a Unix socket, for programs of this user. The directory must not be writable by others. */
export async function listenOnSocket(
  app: App,
  path: string,
  options: Pick<ListenOptions, "stalledMs"> = {},
): Promise<Pick<HttpListener, "close">> {
  const server = createHttpServer(app, options);
  // A killed process may have left its socket behind.
  rmSync(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  chmodSync(path, 0o600);
  let closePromise: Promise<void> | null = null;
  // Closing the server also removes the socket file.
  return { close: (graceMs) => (closePromise ??= close(server, graceMs)) };
}

function createHttpServer(
  app: App,
  { stalledMs, maxConnections: limit = maxConnections }: Pick<ListenOptions, "stalledMs" | "maxConnections">,
): Server {
  const handle = getRequestListener(app.fetch, { errorHandler: refuseMalformed });
  const onRequest: RequestListener = (incoming, outgoing) => {
    // For every route: a response that is written but not read occupies memory.
    outgoing.once("prefinish", () => disconnectStalled(outgoing, stalledMs));
    if (app.serveDirectly?.(incoming, outgoing) !== true) void handle(incoming, outgoing);
  };
  const server = createServer(
    // No overall timeout, because uploads can take a long time. The reader of a body limits its duration.
    { requestTimeout: 0, headersTimeout: 30_000, keepAliveTimeout: 65_000, maxHeaderSize: 32 * 1024 },
    onRequest,
  );
  limitConnections(server, limit);
  return server;
}

/** Responds to a request that cannot be parsed, such as one whose Host header or path does not form a URL. */
function refuseMalformed(): Response {
  return renderRefusal(new Refusal(400, "DROVER-API-029", "The request line or its headers are malformed."));
}

function bind(server: Server, { host, port }: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => reject(toListenError(cause, host, port)));
    server.listen(port, host, resolve);
  });
}

function toListenError(cause: Error, host: string, port: number): HostError {
  const code: unknown = Reflect.get(cause, "code");
  const isTaken = code === "EADDRINUSE";
  return new HostError({
    code: "DROVER-API-026",
    field: "port",
    message: isTaken
      ? `Port ${port} on ${host} is used by another program.`
      : `Cannot listen on ${host} port ${port}: ${cause.message}`,
    next: isTaken
      ? "Stop that program, or use another port: --port 8766 (--port 0 takes a free one)."
      : "Use another --host or --port.",
    cause,
  });
}

function close(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const forceTimer = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearTimeout(forceTimer);
      resolve();
    });
    server.closeIdleConnections();
  });
}

function toUrlHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
