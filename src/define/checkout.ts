import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

export interface Checkout {
  repo_sha: string | null;
  /** The root of the repository, or the directory itself where it is in none. */
  repo_root: string;
}

/**
 * The commit that a command in `directory` works on: the given one, else the one it inherits, else what its repository
 * has checked out. It inherits nothing from another repository.
 */
export function findCheckout(
  directory: string,
  given: string | null,
  env: Readonly<Record<string, string | undefined>> = {},
): Checkout {
  const found = findRepository(directory);
  // a nested Drover sees its working directory without links
  const repository = found && realpathSync.native(found);
  const { DROVER_REPO_SHA: inherited, DROVER_REPO_ROOT: from } = env;
  const isSame = repository === null || !from || from === repository;
  const own = (): string | null => repository && readRepoSha(repository);
  return { repo_sha: given ?? ((isSame && inherited) || own()), repo_root: repository ?? directory };
}

/**
 * Reads git's own files: starting `git` would cost more than the rest of an `exec`. null where there is no commit, or
 * a layout that is not understood.
 */
function readRepoSha(repository: string): string | null {
  try {
    const gitDirectory = findGitDirectory(repository);
    const head = (readIfThere(join(gitDirectory, "HEAD")) ?? "").trim();
    if (isSha(head)) return head;
    const ref = /^ref: (refs\/\S+)$/.exec(head)?.[1];
    if (!ref || ref.includes("..")) return null;
    return resolveRef(ref, gitDirectory);
  } catch (error) {
    // a missing or unreadable file here is an answer (no commit, a foreign layout), not a fault of the command
    if (error instanceof Error && "code" in error) return null;
    throw error;
  }
}

function findRepository(directory: string): string | null {
  for (let folder = directory; ; folder = dirname(folder)) {
    if (existsSync(join(folder, ".git"))) return folder;
    if (dirname(folder) === folder) return null;
  }
}

/** `.git` is a folder, or in a work tree a file that names one. */
function findGitDirectory(repository: string): string {
  const dotGit = join(repository, ".git");
  const pointer = /^gitdir: (.+)$/m.exec(readIfThere(dotGit) ?? "")?.[1];
  return pointer ? resolve(repository, pointer.trim()) : dotGit;
}

function resolveRef(ref: string, gitDirectory: string): string | null {
  const common = commonDirectory(gitDirectory);
  for (const folder of gitDirectory === common ? [common] : [gitDirectory, common]) {
    const loose = readIfThere(join(folder, ref))?.trim();
    if (loose && isSha(loose)) return loose;
  }
  const packed = readIfThere(join(common, "packed-refs")) ?? "";
  const line = packed.split("\n").find((entry) => entry.endsWith(` ${ref}`));
  const sha = line?.split(" ")[0] ?? "";
  return isSha(sha) ? sha : null;
}

function commonDirectory(gitDirectory: string): string {
  const pointer = readIfThere(join(gitDirectory, "commondir"))?.trim();
  return pointer ? resolve(dirname(join(gitDirectory, "commondir")), pointer) : gitDirectory;
}

/** Of packed-refs of a large repository. */
const maxBytes = 16 * 1024 * 1024;

/**
 * null where there is no plain file of a sensible size. A pipe or a device in its place, left by the author of
 * the folder or by an earlier run, would block the process for ever.
 */
function readIfThere(file: string): string | null {
  let fd: number;
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")) return null;
    throw error;
  }
  try {
    const found = fstatSync(fd);
    return found.isFile() && found.size <= maxBytes ? readFileSync(fd, "utf8") : null;
  } finally {
    closeSync(fd);
  }
}

function isSha(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
}
