import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Environment } from "../model/environment.ts";

export interface Checkout {
  repo_sha: string | null;
  /** The root of the repository, or the directory itself if it is not in one. */
  repo_root: string;
}

/**
 * Returns the repository root of a directory and its commit: `repoSha` if not null, otherwise the commit inherited from
 * an enclosing Drover process, otherwise the commit that is checked out. A commit is not inherited if both processes are
 * in repositories, and these differ.
 */
export function findCheckout(directory: string, repoSha: string | null, env: Environment = {}): Checkout {
  const root = findRepository(directory);
  // A nested Drover process sees its working directory with all links resolved.
  const repository = root && realpathSync.native(root);
  const { DROVER_REPO_SHA: inherited, DROVER_REPO_ROOT: inheritedRoot } = env;
  const isSameRepository = repository === null || !inheritedRoot || inheritedRoot === repository;
  const readCheckedOut = (): string | null => repository && readHeadCommit(repository);
  return {
    repo_sha: repoSha ?? ((isSameRepository && inherited) || readCheckedOut()),
    repo_root: repository ?? directory,
  };
}

/**
 * Reads git's own files, because starting `git` would cost more than the rest of `drover exec`. Returns null if there is
 * no commit or the layout is unknown.
 */
function readHeadCommit(repository: string): string | null {
  try {
    const gitDirectory = findGitDirectory(repository);
    const head = (readIfExists(join(gitDirectory, "HEAD")) ?? "").trim();
    if (isSha(head)) return head;
    const ref = /^ref: (refs\/\S+)$/.exec(head)?.[1];
    if (!ref || ref.includes("..")) return null;
    return resolveRef(ref, gitDirectory);
  } catch (error) {
    // A missing or unreadable file means that there is no commit or that the layout is unknown. It must not fail the command.
    if (error instanceof Error && "code" in error) return null;
    throw error;
  }
}

function findRepository(directory: string): string | null {
  for (let current = directory; ; current = dirname(current)) {
    if (existsSync(join(current, ".git"))) return current;
    if (dirname(current) === current) return null;
  }
}

/** `.git` is a directory, or a file with the path of one in a linked work tree. */
function findGitDirectory(repository: string): string {
  const dotGit = join(repository, ".git");
  const pointer = /^gitdir: (.+)$/m.exec(readIfExists(dotGit) ?? "")?.[1];
  return pointer ? resolve(repository, pointer.trim()) : dotGit;
}

function resolveRef(ref: string, gitDirectory: string): string | null {
  const commonDirectory = findCommonDirectory(gitDirectory);
  for (const directory of gitDirectory === commonDirectory ? [commonDirectory] : [gitDirectory, commonDirectory]) {
    const loose = readIfExists(join(directory, ref))?.trim();
    if (loose && isSha(loose)) return loose;
  }
  const packed = readIfExists(join(commonDirectory, "packed-refs")) ?? "";
  const line = packed.split("\n").find((entry) => entry.endsWith(` ${ref}`));
  const sha = line?.split(" ")[0] ?? "";
  return isSha(sha) ? sha : null;
}

function findCommonDirectory(gitDirectory: string): string {
  const pointer = readIfExists(join(gitDirectory, "commondir"))?.trim();
  return pointer ? resolve(dirname(join(gitDirectory, "commondir")), pointer) : gitDirectory;
}

/** Enough for the packed-refs file of a large repository. */
const maxBytes = 16 * 1024 * 1024;

/**
 * Returns null unless this is a regular file of reasonable size. A named pipe or device, left by the author of the
 * repository or by an earlier run, would block the process forever.
 */
function readIfExists(file: string): string | null {
  let fd: number;
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")) return null;
    throw error;
  }
  try {
    const stats = fstatSync(fd);
    return stats.isFile() && stats.size <= maxBytes ? readFileSync(fd, "utf8") : null;
  } finally {
    closeSync(fd);
  }
}

function isSha(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
}
