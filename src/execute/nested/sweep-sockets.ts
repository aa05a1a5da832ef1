import { lstatSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { nestedDirectory, nestedSocketName } from "../../model/state-layout.ts";
import { removeTree } from "../workspace/remove-tree.ts";

/** An empty directory is removed only after this time, because the Drover process that created it may be about to listen there. */
const graceMs = 3_600_000;

/** Removes sockets whose Drover process was killed, with their directories. */
export async function sweepSockets(runsDirectory: string): Promise<void> {
  const directory = nestedDirectory(runsDirectory);
  // A run can replace the directory with a symlink.
  if (lstatSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) return;
  for (const name of listNames(directory)) {
    const socketDirectory = join(directory, name);
    const stat = lstatSync(socketDirectory, { throwIfNoEntry: false });
    if (stat?.isDirectory() !== true) continue;
    const socket = join(socketDirectory, nestedSocketName);
    // A regular file refuses connections too, so make sure that this is a socket.
    const isSocket = lstatSync(socket, { throwIfNoEntry: false })?.isSocket() === true;
    const isDead = isSocket
      ? (await tryConnect(socket)) === "ECONNREFUSED"
      : listNames(socketDirectory).length === 0 && Date.now() - stat.mtimeMs > graceMs;
    if (isDead) await removeTree(runsDirectory, socketDirectory);
  }
}

/** Resolves with the error code, or null if the connection succeeds. */
function tryConnect(path: string): Promise<unknown> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(null);
    });
    socket.once("error", (error) => resolve(Reflect.get(error, "code")));
  });
}

function listNames(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}
