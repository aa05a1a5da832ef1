import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { HostError, RequestError } from "../model/errors.ts";
import { isLoopbackAddress } from "./guard.ts";
import { Refusal } from "./refusal.ts";
import { renderRefusal } from "./render.ts";

export interface ListenOptions {
  host: string;
  /** 0: whichever is free. */
  port: number;
  authEnabled: boolean;
}

export interface Listening {
  url: string;
  port: number;
  /** No new requests; those under way have `graceMs` to end. Idempotent. */
  close(graceMs: number): Promise<void>;
}

/** Refuses to be open to other machines without auth: that would hand this one to whoever asks. */
export function refuseOpenDoor({ host, authEnabled }: Pick<ListenOptions, "host" | "authEnabled">): void {
  if (authEnabled || isLoopbackAddress(host)) return;
  throw new RequestError({
    code: "DROVER-API-025",
    field: "host",
    message: `Without auth, Drover listens on loopback only, not on ${host}.`,
    next: "Leave AUTH_ENABLED on, or listen on 127.0.0.1.",
  });
}

/** Each is compared with what a browser says of itself, so that one which is no address lets in what it should not. */
export function refusePublicUrls(publicUrls: readonly string[]): void {
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
  refuseOpenDoor(options);
  const answer = getRequestListener(app.fetch, { errorHandler: malformed });
  const server = createServer(
    // a file may take long: how long a body may is for whoever reads it
    { requestTimeout: 0, headersTimeout: 30_000, keepAliveTimeout: 65_000, maxHeaderSize: 32 * 1024 },
    (incoming, outgoing) => void answer(incoming, outgoing),
  );
  await bind(server, options);
  // a TCP server's address is never a string
  const { port } = server.address() as AddressInfo;
  let closing: Promise<void> | null = null;
  return {
    url: `http://${urlHost(options.host)}:${port}`,
    port,
    close: (graceMs) => (closing ??= close(server, graceMs)),
  };
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
