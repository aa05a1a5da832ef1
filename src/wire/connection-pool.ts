import {
  Agent,
  type AgentOptions,
  type ClientRequest,
  type OutgoingHttpHeaders,
  request as httpRequest,
} from "node:http";
import { connect, isIP, type LookupFunction, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Address, readAddress } from "./address.ts";
import { assertPrivateSocket } from "./private-path.ts";
import { connectToOrigin } from "./socket-origin.ts";

/** Which coordinator, and who asks. */
export interface Target {
  /** e.g. http://127.0.0.1:8765, https://drover.example or unix:/run/user/1000/drover.sock */
  url: string;
  /** How people reach it and messages name it, where that is not `url`. */
  shownAs?: string;
  /** null where the coordinator asks for none. */
  token: string | null;
  /** Whether the token may go to another machine unencrypted, to whatever answers there. */
  allowHttp?: boolean;
}

/**
 * Connections to one coordinator. Every new one is proved to lead there before a token or anything else is written to it:
 * by TLS, by being a socket that no other user can have made, or by the coordinator's proof that it knows the token.
 */
export interface ConnectionPool {
  request(path: string, options: { method: string; headers: OutgoingHttpHeaders; once?: boolean }): ClientRequest;
  /** Closes those that nothing is under way on. */
  dropIdle(): void;
  close(): void;
}

/** For a connection to be there, and proved. */
const openMs = 30_000;

/** Throws where the address is not one that a token may be sent to. */
export function openConnectionPool(target: Target): ConnectionPool {
  const address = readAddress(target.url, target.allowHttp === true);
  const opening = new Set<Socket>();
  const open = (): Promise<Socket> => openSocket(address, target, opening);
  const kept = new OpeningAgent({ keepAlive: true }, open);
  const single = new OpeningAgent({ keepAlive: false }, open);
  const isUnix = address.kind === "unix";
  return {
    request: (path, { method, headers, once }) =>
      httpRequest({
        agent: once ? single : kept,
        method,
        path: isUnix ? path : `${address.prefix}${path}`,
        headers: {
          host: isUnix ? "localhost" : address.host,
          ...(target.token === null ? {} : { authorization: `Bearer ${target.token}` }),
          ...headers,
        },
      }),
    dropIdle() {
      for (const idle of Object.values(kept.freeSockets).flat()) idle?.destroy();
    },
    close() {
      for (const socket of opening) socket.destroy(new Error("given up"));
      kept.destroy();
      single.destroy();
    },
  };
}

class OpeningAgent extends Agent {
  readonly #open: () => Promise<Socket>;

  constructor(options: AgentOptions, open: () => Promise<Socket>) {
    super(options);
    this.#open = open;
  }

  override createConnection(_options: unknown, give?: Give): undefined {
    if (give) void this.#openFor(give);
  }

  async #openFor(give: Give): Promise<void> {
    const opened = await this.#open().catch((error: Error) => error);
    if (opened instanceof Error) (give as (error: Error) => void)(opened); // where there is an error there is no socket
    else give(null, opened);
  }
}

type Give = (error: Error | null, socket: Duplex) => void;

async function openSocket(address: Address, target: Target, opening: Set<Socket>): Promise<Socket> {
  if (address.kind === "unix") assertPrivateSocket(address.path);
  // with node:crypto, which TLS does not need here; before there is a connection, so that none of it is missed
  const prove = needsProof(address, target) ? (await import("./verify-coordinator.ts")).verifyCoordinator : null;
  const { socket, ready, origin } = await connectTo(address);
  opening.add(socket);
  const timer = setTimeout(() => socket.destroy(new Error(`no connection within ${openMs} ms`)), openMs);
  try {
    await connected(socket, ready);
    await prove?.(socket, { ...placeShown(address), ...target, origin, allowHttp: target.allowHttp === true });
    return socket;
  } catch (error) {
    // what it says from here on is nobody's business
    socket.on("error", () => undefined).destroy();
    throw error;
  } finally {
    clearTimeout(timer);
    opening.delete(socket);
  }
}

/**
 * Over a socket of this user, only for the token of an attempt: runs have the same user, and one could put a socket of its
 * own where another expects its coordinator's.
 */
function needsProof(address: Address, { token }: Target): boolean {
  return address.kind === "unix" ? token?.startsWith("drva_") === true : !address.secure;
}

interface Connecting {
  socket: Socket;
  /** Of its events, the one that says that it can be used. */
  ready: string;
  /** null: known once it is connected. */
  origin: string | null;
}

async function connectTo(address: Address): Promise<Connecting> {
  if (address.kind === "unix")
    return { ...connectToOrigin(address.path, (path) => connect({ path })), ready: "connect" };
  if (address.secure) return { socket: await connectSecurely(address), ready: "secureConnect", origin: null };
  return { socket: connect({ ...placeOf(address), noDelay: true }), ready: "connect", origin: null };
}

function placeShown(address: Address): { host: string; prefix: string } {
  return address.kind === "unix" ? { host: "localhost", prefix: "" } : address;
}

type TcpAddress = Extract<Address, { kind: "tcp" }>;

async function connectSecurely(address: TcpAddress): Promise<Socket> {
  const tls = await import("node:tls");
  const { hostname } = address;
  return tls.connect({
    ...placeOf(address),
    ...(isIP(hostname) === 0 ? { servername: hostname } : {}),
    ALPNProtocols: ["http/1.1"],
  });
}

function placeOf({ hostname, port }: TcpAddress): { host: string; port: number; lookup?: LookupFunction } {
  return { host: hostname, port, ...(hostname === "localhost" ? { lookup: thisMachine } : {}) };
}

/** Whatever /etc/hosts says, and IPv4 first: a coordinator listens there unless told otherwise. */
const thisMachine: LookupFunction = (_hostname, options, callback) => {
  if (options.all)
    callback(null, [
      { address: "127.0.0.1", family: 4 },
      { address: "::1", family: 6 },
    ]);
  else callback(null, "127.0.0.1", 4);
};

function connected(socket: Socket, event: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (): void => {
      socket.off("error", fail).off("close", gone).off(event, ready);
    };
    const ready = (): void => {
      done();
      resolve();
    };
    const fail = (error: Error): void => {
      done();
      // of several addresses that were tried, the first
      if (error instanceof AggregateError && error.message === "") error.message = String(error.errors[0]?.message);
      reject(error);
    };
    const gone = (): void => fail(new Error("the connection was closed"));
    socket.once(event, ready).once("error", fail).once("close", gone);
  });
}
