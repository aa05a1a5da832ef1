import { mkdirSync, mkdtempSync, rmdirSync, unlinkSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { restrictSocket } from "../wire/socket-origin.ts";
import { nestedSocketFile, nestedSocketName } from "../model/state-layout.ts";

/** Serves connections of Drover commands inside runs. */
export interface NestedServer {
  accept(socket: Socket): void;
  stop(): Promise<void>;
}

export interface NestedSocket {
  url: string;
  /** Closes all connections and removes the socket. Idempotent. */
  close(): Promise<void>;
}

/** The longest socket path that the kernel accepts. */
const maxPathBytes = 107;
/**
 * The delay before the socket is created. A command that ends sooner has no time to start a nested Drover process and needs
 * no socket. There are several short waits, so that a delayed process on a busy machine still notices that the command has ended.
 */
const bindDelay = { waits: 3, ms: 15 };

/** Creates the path of a socket. `name` must be unguessable, and its last 12 characters unique. If the path is too long, a temporary directory is used. */
export function createNestedSocketPath(runs: string, name: string): string {
  const path = nestedSocketFile(runs, name.slice(-12));
  if (Buffer.byteLength(path) <= maxPathBytes) return path;
  return join(mkdtempSync(join(tmpdir(), "drover-")), nestedSocketName);
}

/**
 * Listens for Drover commands inside this process's runs, on a socket in a directory of its own. Loads the server on the
 * first request. Does not keep the process alive.
 */
export function openNestedSocket(
  path: string,
  serve: (origin: string) => Promise<NestedServer>,
  onError: (error: unknown) => void,
): NestedSocket {
  let server: Server | null = null;
  let origin = "";
  let serving: Promise<NestedServer> | null = null;
  const sockets = new Set<Socket>();
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    // The client notices the broken connection itself.
    socket.on("error", () => undefined);
    // Load the server on the first byte: a sweep connects only to check that this process lives.
    socket.once("data", (chunk: Buffer) => {
      socket.pause();
      socket.unshift(chunk);
      (serving ??= serve(origin)).then(
        (nestedServer) => nestedServer.accept(socket),
        (error: unknown) => {
          onError(error);
          socket.destroy();
        },
      );
    });
  };
  // Create the directory now: a command sees only directories that exist when it starts.
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  let waits = 0;
  const timer = setInterval(() => {
    waits += 1;
    if (waits < bindDelay.waits) return;
    clearInterval(timer);
    server = createServer(accept);
    // Nested commands cannot connect, but the run continues.
    server.on("error", onError);
    // If the server was closed before it listened, the socket no longer exists.
    const onListening = (): void =>
      ignoreSystemErrors(() => {
        origin = restrictSocket(path);
      });
    server.listen(path, onListening).unref();
  }, bindDelay.ms).unref();

  let closeResult: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    clearInterval(timer);
    server?.close();
    await (await serving?.catch(() => null))?.stop();
    for (const socket of sockets) socket.destroy();
    if (server !== null) ignoreSystemErrors(() => unlinkSync(path));
    ignoreSystemErrors(() => rmdirSync(dirname(path)));
  };
  return { url: `unix:${path}`, close: () => (closeResult ??= close()) };
}

/** Ignores system errors, such as a file that does not exist. */
function ignoreSystemErrors(action: () => void): void {
  try {
    action();
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
  }
}
