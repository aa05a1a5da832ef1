import { realpathSync, statSync } from "node:fs";
import type { StartCommand, StartOptions } from "../model/process.ts";
import { isCode } from "./process-group.ts";
import { type Mount, readMounts } from "./mounts.ts";

/** The directories to protect from a command. */
export type Protection = Pick<StartOptions, "hide" | "show" | "readOnly">;

/** Wraps `start` so that the same directories are protected from every command. */
export function protectFromAll(start: StartCommand, protection: Protection): StartCommand {
  return (command, options, signal) => {
    const show = [...(options.show ?? []), ...(protection.show ?? [])];
    return start(command, { ...options, ...protection, show }, signal);
  };
}

/** The real paths that a launcher mounts over. */
export interface ProtectedPaths {
  /** Appear empty to the command. */
  hidden: readonly string[];
  /** Inside hidden directories, but visible to the command. */
  shown: readonly string[];
  /** Read-only for the command. */
  frozen: readonly string[];
}

export const nothingProtected: ProtectedPaths = { hidden: [], shown: [], frozen: [] };

export function protectedPaths({ hide = [], show = [], readOnly = [] }: Protection): ProtectedPaths {
  const candidates = realPaths(show);
  const hidden = pathsToHide(hide, candidates);
  const shown = candidates.filter((path) => hidden.some((directory) => isBelow(path, directory)));
  return { hidden, shown, frozen: realPaths(readOnly) };
}

/** The distinct real paths of those that exist. */
export function realPaths(directories: readonly string[]): string[] {
  return [...new Set(directories.flatMap((directory) => realPath(directory) ?? []))];
}

/**
 * All paths that a launcher must cover to make these directories unreachable: their real paths, and every other path that
 * a bind mount gives them. Missing directories are ignored.
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

/** Drops paths below another hidden path, which covers them, unless they are inside a shown directory. */
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

/** Also false for a path that another mount already covers. */
function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
