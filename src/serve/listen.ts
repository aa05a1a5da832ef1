import { chmodSync, rmSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { HostError, RequestError } from "../model/errors.ts";
import { limitConnections } from "./limit-connections.ts";
import { disconnectStalled } from "./disconnect-stalled.ts";
import { isLoopbackAddress } from "./guard.ts";
import { Refusal } from "./refusal.ts";
import { renderRefusal } from "./render.ts";

export interface ListenOptions {
  host: string;
  /** 0: whichever is free. */
  port: number;
  authEnabled: boolean;
  /** The path of a socket to listen on as well. One that is there already is replaced. */
  socket?: string | null;
  /** Told where that cannot be had: nobody is kept out by it. */
  onSocketFault?: (fault: unknown) => void;
  /** After which an answer is cut off whose reader takes nothing of it. */
  stalledMs?: number | undefined;
  maxConnections?: number | undefined;
}

const maxConnections = 10_000;

export interface Listening {
  url: string;
  port: number;
  /** null where there is none. */
  socket: string | null;
  /** No new requests; those under way have `graceMs` to end. Idempotent. */
  close(graceMs: number): Promise<void>;
}

/** Refuses to be open to other machines without auth: that would hand this one to whoever asks. */
export function refuseOpenWithoutAuth({ host, authEnabled }: Pick<ListenOptions, "host" | "authEnabled">): void {
  if (authEnabled || isLoopbackAddress(host)) return;
  throw new RequestError({
    code: "DROVER-API-025",
    field: "host",
    message: `Without auth, Drover listens on loopback only, not on ${host}.`,
    next: "Leave AUTH_ENABLED on, or listen on 127.0.0.1.",
  });
}

/** Each is compared with what a browser says of itself, so that one which is no address lets in what it should not. */
export function checkPublicUrls(publicUrls: readonly string[]): void {
  const wrong = publicUrls.find((url) => !isHttpAddress(url));
  if (wrong === undefined) return;
  throw new RequestError({
    code: "DROVER-USE-001",
    field: "--public-url",
    message: `${JSON.stringify(wrong)} is not the address of a web server.`,
    next: "Give it with http:// or https:// and a host name, e.g. --public-url https://drover.example",
  });
}

function isHttpAddress(url: string): boolean {
  return /^https?:\/\/[^/]/i.test(url) && URL.canParse(url);
}

export async function listen(app: Hono<{ Bindings: HttpBindings }>, options: ListenOptions): Promise<Listening> {
  refuseOpenWithoutAuth(options);
  const server = serverOf(app, options);
  await bind(server, options);
  // a TCP server's address is never a string
  const { port } = server.address() as AddressInfo;
  const onSocket = options.socket ? await tryToListen(app, options.socket, options) : null;
  let closing: Promise<void> | null = null;
  const closeAll = async (graceMs: number): Promise<void> => {
    await Promise.all([close(server, graceMs), onSocket?.close(graceMs)]);
  };
  return {
    url: `http://${urlHost(options.host)}:${port}`,
    port,
    socket: onSocket && options.socket ? options.socket : null,
    close: (graceMs) => (closing ??= closeAll(graceMs)),
  };
}

async function tryToListen(
  app: Hono<{ Bindings: HttpBindings }>,
  path: string,
  { onSocketFault, stalledMs }: ListenOptions,
): Promise<Pick<Listening, "close"> | null> {
  try {
    return await listenOnSocket(app, path, { stalledMs });
  } catch (fault) {
    onSocketFault?.(fault);
    return null;
  }
}

/** Listens on a socket alone, for this user's programs only. Its folder must be one that nobody else can write to. */
export async function listenOnSocket(
  app: Hono<{ Bindings: HttpBindings }>,
  path: string,
  options: Pick<ListenOptions, "stalledMs"> = {},
): Promise<Pick<Listening, "close">> {
  const server = serverOf(app, options);
  // left by one that was killed: nobody listens on it any more
  rmSync(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  chmodSync(path, 0o600);
  let closing: Promise<void> | null = null;
  // it removes the file with it
  return { close: (graceMs) => (closing ??= close(server, graceMs)) };
}

function serverOf(
  app: Hono<{ Bindings: HttpBindings }>,
  { stalledMs, maxConnections: most = maxConnections }: Pick<ListenOptions, "stalledMs" | "maxConnections">,
): Server {
  const answer = getRequestListener(app.fetch, { errorHandler: malformed });
  const onRequest: RequestListener = (incoming, outgoing) => {
    // whatever its route: all of it is written, and takes up memory until it is read
    outgoing.once("prefinish", () => disconnectStalled(outgoing, stalledMs));
    void answer(incoming, outgoing);
  };
  const server = createServer(
    // a file may take long: how long a body may is for its reader to say
    { requestTimeout: 0, headersTimeout: 30_000, keepAliveTimeout: 65_000, maxHeaderSize: 32 * 1024 },
    onRequest,
  );
  limitConnections(server, most);
  return server;
}

/** A request that cannot even be made into one: a Host header or a path that is no part of a URL. */
function malformed(): Response {
  return renderRefusal(new Refusal(400, "DROVER-API-029", "The request line or its headers are malformed."));
}

function bind(server: Server, { host, port }: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => reject(bindFault(cause, host, port)));
    server.listen(port, host, resolve);
  });
}

function bindFault(cause: Error, host: string, port: number): HostError {
  const code: unknown = Reflect.get(cause, "code");
  const taken = code === "EADDRINUSE";
  return new HostError({
    code: "DROVER-API-026",
    field: "port",
    message: taken
      ? `Port ${port} on ${host} is taken by another program.`
      : `Cannot listen on ${host} port ${port}: ${cause.message}`,
    next: taken
      ? "Stop that program, or use another port: --port 8766 (--port 0 takes a free one)."
      : "Use another --host or --port.",
    cause,
  });
}

function close(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearTimeout(cut);
      resolve();
    });
    server.closeIdleConnections();
  });
}

function urlHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
