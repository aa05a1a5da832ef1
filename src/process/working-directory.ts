import { closeSync, constants, existsSync, openSync, readlinkSync, realpathSync } from "node:fs";
import { isWithin } from "./protected-paths.ts";

/** Linux only, and missing in Node's constants. Needs no permission on the directory itself. */
export const O_PATH = 0o10000000;

/**
 * The directory in which a command starts. A descriptor holds it, so that the command starts in this directory even if
 * another process replaces its path with a symlink. Systems without /proc/self/fd use the path.
 */
export interface WorkingDirectory {
  realPath: string;
  /** The path to start in. Valid until it is closed, in this process and its children. */
  cwd: string;
  /** null on systems without /proc/self/fd. */
  fd: number | null;
  close(): void;
}

export type OpenedWorkingDirectory = WorkingDirectory | { errno: string } | { replaced: true };

/**
 * With `root`, a real path, the directory must be this one or inside it. Without it, the path of this process's own
 * directory means that directory, even if another process has replaced the path with a link.
 */
export function openWorkingDirectory(path: string, root: string | undefined): OpenedWorkingDirectory {
  try {
    const directory = open(root === undefined && path === process.cwd() ? "." : path);
    if (root === undefined || isWithin(directory.realPath, root)) return directory;
    directory.close();
    return { replaced: true };
  } catch (error) {
    if (error instanceof Error && "code" in error && typeof error.code === "string") return { errno: error.code };
    throw error;
  }
}

function open(path: string): WorkingDirectory {
  if (!existsSync("/proc/self/fd"))
    return { realPath: realpathSync.native(path), cwd: path, fd: null, close: () => undefined };
  const fd = openSync(path, O_PATH | constants.O_DIRECTORY);
  const cwd = `/proc/self/fd/${fd}`;
  try {
    return { realPath: readlinkSync(cwd), cwd, fd, close: () => closeSync(fd) };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}
