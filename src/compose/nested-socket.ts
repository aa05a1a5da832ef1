import { chmodSync, mkdirSync, mkdtempSync, rmdirSync, unlinkSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { originOfSocket } from "../wire/socket-origin.ts";
import { nestedSocketFile, nestedSocketName } from "../model/state-layout.ts";

/** Takes connections of Drover commands inside runs. */
export interface NestedServer {
  accept(socket: Socket): void;
  stop(): Promise<void>;
}

export interface NestedSocket {
  url: string;
  /** Ends what it serves, and removes the socket. Idempotent. */
  close(): Promise<void>;
}

/** What the kernel takes for the path of a socket, with its end. */
const longestPath = 107;
/**
 * A command that has ended by then had no time to start a Drover of its own, and costs no socket. In several waits: a
 * process that was held up, as all are on a busy machine, sees between them that the command has ended.
 */
const bindAfter = { waits: 3, ofMs: 15 };

/** `name` is unguessable, and its end is unique. Where the path is too long, the socket is in the folder for temporary files. */
export function nestedSocketPath(runs: string, name: string): string {
  const path = nestedSocketFile(runs, name.slice(-12));
  if (Buffer.byteLength(path) <= longestPath) return path;
  return join(mkdtempSync(join(tmpdir(), "drover-")), nestedSocketName);
}

/**
 * Listens for Drover commands inside this process's runs, in a folder that has nothing else in it. What serves them is loaded with the first connection; until
 * then this is one socket. Does not keep the process alive.
 */
export function openNestedSocket(
  path: string,
  serve: (origin: string) => Promise<NestedServer>,
  onFault: (error: unknown) => void,
): NestedSocket {
  let server: Server | null = null;
  let origin = "";
  let serving: Promise<NestedServer> | null = null;
  const sockets = new Set<Socket>();
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    // it is the caller's to see that it got no answer
    socket.on("error", () => undefined);
    // not before it asks for something: a sweep looks only whether somebody is here
    socket.once("data", (chunk: Buffer) => {
      socket.pause();
      socket.unshift(chunk);
      (serving ??= serve(origin)).then(
        (one) => one.accept(socket),
        (error: unknown) => {
          onFault(error);
          socket.destroy();
        },
      );
    });
  };
  // at once: a command is shown only what is there when it starts
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  let waits = 0;
  const timer = setInterval(() => {
    waits += 1;
    if (waits < bindAfter.waits) return;
    clearInterval(timer);
    server = createServer(accept);
    // commands inside find nobody there; the run itself goes on
    server.on("error", onFault);
    // closed before it listened, it has removed the socket again
    const onListening = (): void =>
      tryTo(() => {
        origin = originOfSocket(path);
        chmodSync(path, 0o600);
      });
    server.listen(path, onListening).unref();
  }, bindAfter.ofMs).unref();

  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    clearInterval(timer);
    server?.close();
    await (await serving?.catch(() => null))?.stop();
    for (const socket of sockets) socket.destroy();
    if (server !== null) tryTo(() => unlinkSync(path));
    tryTo(() => rmdirSync(dirname(path)));
  };
  return { url: `unix:${path}`, close: () => (closing ??= close()) };
}

/** Gone already, or never made. */
function tryTo(remove: () => void): void {
  try {
    remove();
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
  }
}
