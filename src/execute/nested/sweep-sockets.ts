import { lstatSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { nestedDirectory, nestedSocketName } from "../../model/state-layout.ts";
import { removeTree } from "../workspace/remove-tree.ts";

/** A Drover listens soon after it made the folder for its socket. */
const youngMs = 3_600_000;

/** Removes the sockets of Drovers that were killed, with their folders: nobody answers there any more. */
export async function sweepSockets(runs: string): Promise<void> {
  const directory = nestedDirectory(runs);
  // a run can put a link in its place, and a plain file refuses a connection as a dead socket does
  if (lstatSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) return;
  for (const name of namesIn(directory)) {
    const folder = join(directory, name);
    const stat = lstatSync(folder, { throwIfNoEntry: false });
    if (stat?.isDirectory() !== true) continue;
    const socket = join(folder, nestedSocketName);
    const isSocket = lstatSync(socket, { throwIfNoEntry: false })?.isSocket() === true;
    const isDead = isSocket
      ? (await faultOf(socket)) === "ECONNREFUSED"
      : namesIn(folder).length === 0 && Date.now() - stat.mtimeMs > youngMs;
    if (isDead) await removeTree(folder);
  }
}

/** null: somebody answers. */
function faultOf(path: string): Promise<unknown> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(null);
    });
    socket.once("error", (error) => resolve(Reflect.get(error, "code")));
  });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}
