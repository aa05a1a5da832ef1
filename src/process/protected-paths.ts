import { realpathSync, statSync } from "node:fs";
import type { StartCommand, StartOptions } from "../model/process.ts";
import { isCode } from "./process-group.ts";
import { type Mount, readMounts } from "./mounts.ts";

/** What a command must not reach, as its caller names it. */
export type Protection = Pick<StartOptions, "hide" | "show" | "readOnly">;

/** `start` for a caller from all of whose commands the same directories are protected. */
export function protectFromAll(start: StartCommand, protection: Protection): StartCommand {
  return (command, options, signal) => {
    const show = [...(options.show ?? []), ...(protection.show ?? [])];
    return start(command, { ...options, ...protection, show }, signal);
  };
}

/** The same by the real paths that a launcher mounts over. */
export interface ProtectedPaths {
  /** The command finds them empty. */
  hidden: readonly string[];
  /** In hidden ones: the command finds them as they are. */
  shown: readonly string[];
  /** The command cannot change them. */
  frozen: readonly string[];
}

export const nothingProtected: ProtectedPaths = { hidden: [], shown: [], frozen: [] };

export function protectedPaths({ hide = [], show = [], readOnly = [] }: Protection): ProtectedPaths {
  const candidates = realPaths(show);
  const hidden = pathsToHide(hide, candidates);
  const shown = candidates.filter((path) => hidden.some((directory) => isBelow(path, directory)));
  return { hidden, shown, frozen: realPaths(readOnly) };
}

/** Of those that exist, each once. */
export function realPaths(directories: readonly string[]): string[] {
  return [...new Set(directories.flatMap((directory) => realPath(directory) ?? []))];
}

/**
 * The paths a launcher has to cover so that these directories cannot be reached: their real ones, and every other that
 * a bind mount gives them. A directory that does not exist needs nothing.
 */
function pathsToHide(directories: readonly string[], shown: readonly string[]): string[] {
  const real = realPaths(directories);
  if (real.length === 0) return [];
  const all = readMounts();
  return withoutCovered(
    real.flatMap((path) => [path, ...otherPaths(path, all)]),
    shown,
  );
}

function realPath(path: string): string | null {
  try {
    return realpathSync.native(path);
  } catch (error) {
    if (isCode(error, "ENOENT") || isCode(error, "ENOTDIR")) return null;
    return path; // the launcher finds out whether it can be covered
  }
}

function otherPaths(path: string, mounts: readonly Mount[]): string[] {
  const own = mounts.findLast(
    ({ point }) =>
      isWithin(path, point) &&
      !mounts.some((other) => isWithin(path, other.point) && other.point.length > point.length),
  );
  if (own === undefined) return [];
  const inFileSystem = below(own.root, relativeTo(own.point, path));
  return mounts
    .filter((mount) => mount !== own && mount.device === own.device)
    .flatMap(({ root, point }) => {
      if (isWithin(inFileSystem, root)) return below(point, relativeTo(root, inFileSystem));
      return isWithin(root, inFileSystem) ? point : [];
    })
    .filter((other) => isDirectory(other));
}

/** What lies below another of them is covered by it, unless it lies in something that is shown there. */
function withoutCovered(paths: readonly string[], shown: readonly string[]): string[] {
  const unique = [...new Set(paths)];
  const covers = (other: string, path: string): boolean =>
    isBelow(path, other) && !shown.some((one) => isBelow(one, other) && isBelow(path, one));
  return unique.filter((path) => !unique.some((other) => covers(other, path)));
}

function isBelow(path: string, directory: string): boolean {
  return path !== directory && isWithin(path, directory);
}

export function isWithin(path: string, directory: string): boolean {
  return path === directory || directory === "/" || path.startsWith(`${directory}/`);
}

function relativeTo(directory: string, path: string): string {
  return directory === "/" ? path.slice(1) : path.slice(directory.length + 1);
}

function below(directory: string, relative: string): string {
  if (relative === "") return directory;
  return directory === "/" ? `/${relative}` : `${directory}/${relative}`;
}

/** False also for one that another mount covers already, so that nobody gets there. */
function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
