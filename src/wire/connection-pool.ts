import {
  Agent,
  type AgentOptions,
  type ClientRequest,
  type OutgoingHttpHeaders,
  request as httpRequest,
} from "node:http";
import { connect, isIP, type LookupFunction, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Address, parseAddress } from "./address.ts";
import { assertPrivateSocket } from "./private-path.ts";
import { connectToOrigin } from "./socket-origin.ts";

/** A coordinator's address, and the token to use there. */
export interface Target {
  /** For example http://127.0.0.1:8765, https://drover.example or unix:/run/user/1000/drover.sock. */
  url: string;
  /** The address to show in messages if it differs from `url`. */
  displayUrl?: string;
  /** null if the coordinator runs without auth. */
  token: string | null;
  /** Allows sending the token unencrypted to another machine, which cannot be verified. */
  allowHttp?: boolean;
}

/**
 * Connections to one coordinator. Each new connection is verified before anything is written to it: by TLS, by the
 * ownership of the Unix socket, or by the coordinator's proof that it knows the token.
 */
export interface ConnectionPool {
  /** With `once`, uses a new connection and closes it afterwards. */
  request(path: string, options: { method: string; headers: OutgoingHttpHeaders; once?: boolean }): ClientRequest;
  /** Closes connections without a request in flight. */
  dropIdle(): void;
  close(): void;
}

/** How long connecting and verifying may take. */
const connectTimeoutMs = 30_000;

/** Throws if a token must not be sent to this address. */
export function openConnectionPool(target: Target): ConnectionPool {
  const address = parseAddress(target.url, target.allowHttp === true);
  const openingSockets = new Set<Socket>();
  const open = (): Promise<Socket> => openSocket(address, target, openingSockets);
  const keepAliveAgent = new VerifyingAgent({ keepAlive: true }, open);
  const singleUseAgent = new VerifyingAgent({ keepAlive: false }, open);
  const isUnix = address.kind === "unix";
  return {
    request: (path, { method, headers, once }) =>
      httpRequest({
        agent: once ? singleUseAgent : keepAliveAgent,
        method,
        path: isUnix ? path : `${address.prefix}${path}`,
        headers: {
          host: isUnix ? "localhost" : address.host,
          ...(target.token === null ? {} : { authorization: `Bearer ${target.token}` }),
          ...headers,
        },
      }),
    dropIdle() {
      for (const socket of Object.values(keepAliveAgent.freeSockets).flat()) socket?.destroy();
    },
    close() {
      for (const socket of openingSockets) socket.destroy(new Error("the client was closed"));
      keepAliveAgent.destroy();
      singleUseAgent.destroy();
    },
  };
}

/** An HTTP agent whose sockets are verified before it uses them. */
class VerifyingAgent extends Agent {
  readonly #open: () => Promise<Socket>;

  constructor(options: AgentOptions, open: () => Promise<Socket>) {
    super(options);
    this.#open = open;
  }

  override createConnection(_options: unknown, callback?: OnConnection): undefined {
    if (callback) void this.#openFor(callback);
  }

  async #openFor(callback: OnConnection): Promise<void> {
    const opened = await this.#open().catch((error: Error) => error);
    // The type demands a socket even with an error.
    if (opened instanceof Error) (callback as (error: Error) => void)(opened);
    else callback(null, opened);
  }
}

type OnConnection = (error: Error | null, socket: Duplex) => void;

async function openSocket(address: Address, target: Target, openingSockets: Set<Socket>): Promise<Socket> {
  if (address.kind === "unix") assertPrivateSocket(address.path);
  // Loaded on demand because it needs node:crypto, and before connecting so that no event of the socket is missed.
  const verify = needsProof(address, target) ? (await import("./verify-coordinator.ts")).verifyCoordinator : null;
  const { socket, readyEvent, origin } = await connectTo(address);
  openingSockets.add(socket);
  const timer = setTimeout(
    () => socket.destroy(new Error(`no connection within ${connectTimeoutMs} ms`)),
    connectTimeoutMs,
  );
  try {
    await waitUntilConnected(socket, readyEvent);
    await verify?.(socket, { ...getHttpHost(address), ...target, origin, allowHttp: target.allowHttp === true });
    return socket;
  } catch (error) {
    // Ignore errors of a socket that is being discarded.
    socket.on("error", () => undefined).destroy();
    throw error;
  } finally {
    clearTimeout(timer);
    openingSockets.delete(socket);
  }
}

/**
 * A Unix socket owned by this user needs proof only for an attempt token: runs share the user, so one run could put its
 * own socket where another run expects the coordinator's.
 */
function needsProof(address: Address, { token }: Target): boolean {
  return address.kind === "unix" ? token?.startsWith("drva_") === true : !address.isSecure;
}

interface PendingConnection {
  socket: Socket;
  /** The event that signals a usable socket. */
  readyEvent: string;
  /** null if it is known only after connecting. */
  origin: string | null;
}

async function connectTo(address: Address): Promise<PendingConnection> {
  if (address.kind === "unix")
    return { ...connectToOrigin(address.path, (path) => connect({ path })), readyEvent: "connect" };
  if (address.isSecure) return { socket: await connectSecurely(address), readyEvent: "secureConnect", origin: null };
  return { socket: connect({ ...buildConnectOptions(address), noDelay: true }), readyEvent: "connect", origin: null };
}

function getHttpHost(address: Address): { host: string; prefix: string } {
  return address.kind === "unix" ? { host: "localhost", prefix: "" } : address;
}

type TcpAddress = Extract<Address, { kind: "tcp" }>;

async function connectSecurely(address: TcpAddress): Promise<Socket> {
  const tls = await import("node:tls");
  const { hostname } = address;
  return tls.connect({
    ...buildConnectOptions(address),
    ...(isIP(hostname) === 0 ? { servername: hostname } : {}),
    ALPNProtocols: ["http/1.1"],
  });
}

function buildConnectOptions({ hostname, port }: TcpAddress): { host: string; port: number; lookup?: LookupFunction } {
  return { host: hostname, port, ...(hostname === "localhost" ? { lookup: lookupLoopback } : {}) };
}

/** Ignores /etc/hosts. Tries IPv4 first because a coordinator listens on 127.0.0.1 by default. */
const lookupLoopback: LookupFunction = (_hostname, options, callback) => {
  if (options.all)
    callback(null, [
      { address: "127.0.0.1", family: 4 },
      { address: "::1", family: 6 },
    ]);
  else callback(null, "127.0.0.1", 4);
};

function waitUntilConnected(socket: Socket, event: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const removeListeners = (): void => {
      socket.off("error", onError).off("close", onClose).off(event, onReady);
    };
    const onReady = (): void => {
      removeListeners();
      resolve();
    };
    const onError = (error: Error): void => {
      removeListeners();
      // An AggregateError has no message; show the error of the first address that was tried.
      if (error instanceof AggregateError && error.message === "") error.message = String(error.errors[0]?.message);
      reject(error);
    };
    const onClose = (): void => onError(new Error("the connection was closed"));
    socket.once(event, onReady).once("error", onError).once("close", onClose);
  });
}
