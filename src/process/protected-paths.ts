import { realpathSync, statSync } from "node:fs";
import type { StartCommand, StartOptions } from "../model/process.ts";
import { hasErrorCode } from "./process-group.ts";
import { type Mount, readMounts } from "./mounts.ts";

/** The directories to protect from a command. */
export type Protection = Pick<StartOptions, "hide" | "show" | "readOnly">;

/** Wraps `start` so that these directories are protected from every command, in addition to its own. */
export function withProtection(start: StartCommand, protection: Protection): StartCommand {
  return (command, options, signal) => {
    const merge = (name: keyof Protection): string[] => [...(options[name] ?? []), ...(protection[name] ?? [])];
    const merged = { hide: merge("hide"), show: merge("show"), readOnly: merge("readOnly") };
    return start(command, { ...options, ...merged }, signal);
  };
}

/** The real paths that a launcher mounts over. */
export interface ProtectedPaths {
  /** Appear empty to the command. */
  hidden: readonly string[];
  /** Inside hidden directories, but visible to the command. */
  shown: readonly string[];
  /** Read-only for the command. */
  readOnly: readonly string[];
}

export const nothingProtected: ProtectedPaths = { hidden: [], shown: [], readOnly: [] };

export function resolveProtectedPaths({ hide = [], show = [], readOnly = [] }: Protection): ProtectedPaths {
  // A directory listed in `hide` stays hidden even if `show` lists it too.
  const alwaysHidden = resolveRealPaths(hide);
  const candidates = resolveRealPaths(show).filter((path) => !alwaysHidden.includes(path));
  const hidden = findPathsToHide(alwaysHidden, candidates);
  const shown = candidates.filter((path) => hidden.some((directory) => isBelow(path, directory)));
  return { hidden, shown, readOnly: resolveRealPaths(readOnly) };
}

/** Returns the distinct real paths of the directories that exist. */
export function resolveRealPaths(directories: readonly string[]): string[] {
  return [...new Set(directories.flatMap((directory) => resolveRealPath(directory) ?? []))];
}

/**
 * Returns all paths that a launcher must cover to make these directories, given by their real paths, unreachable: also
 * every other path that a bind mount gives them.
 */
function findPathsToHide(realPaths: readonly string[], shown: readonly string[]): string[] {
  if (realPaths.length === 0) return [];
  const mounts = readMounts();
  return dropCovered(
    realPaths.flatMap((path) => [path, ...findOtherPaths(path, mounts)]),
    shown,
  );
}

function resolveRealPath(path: string): string | null {
  try {
    return realpathSync.native(path);
  } catch (error) {
    if (hasErrorCode(error, "ENOENT") || hasErrorCode(error, "ENOTDIR")) return null;
    return path; // The launcher reports if it cannot cover this path.
  }
}

/** Returns the other paths that bind mounts give to a directory. */
function findOtherPaths(path: string, mounts: readonly Mount[]): string[] {
  const mount = mounts.findLast(
    ({ point }) =>
      isWithin(path, point) &&
      !mounts.some((other) => isWithin(path, other.point) && other.point.length > point.length),
  );
  if (mount === undefined) return [];
  const pathInFileSystem = joinPath(mount.root, relativeTo(mount.point, path));
  return mounts
    .filter((other) => other !== mount && other.device === mount.device)
    .flatMap(({ root, point }) => {
      if (isWithin(pathInFileSystem, root)) return joinPath(point, relativeTo(root, pathInFileSystem));
      return isWithin(root, pathInFileSystem) ? point : [];
    })
    .filter(isDirectory);
}

/** Drops paths below another hidden path, which covers them, unless they are inside a shown directory. */
function dropCovered(paths: readonly string[], shown: readonly string[]): string[] {
  const unique = [...new Set(paths)];
  const covers = (other: string, path: string): boolean =>
    isBelow(path, other) && !shown.some((visible) => isBelow(visible, other) && isBelow(path, visible));
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

function joinPath(directory: string, relative: string): string {
  if (relative === "") return directory;
  return directory === "/" ? `/${relative}` : `${directory}/${relative}`;
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
