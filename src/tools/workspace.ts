import { realpath, stat } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { type ConfinedDirectory, openRealDirectory } from "./confined-directory.ts";
import { getErrno, explainErrno, ToolFailure } from "./tool-failure.ts";

/**
 * The only directory that file tools can access. Paths are opened one part at a time, so that the kernel follows no
 * link.
 */
export interface Workspace {
  readonly root: string;
  /** Resolves a path, following links inside the workspace. Its parent directories stay open while `use` runs. */
  withPath<T>(path: string, options: ResolveOptions, use: (resolved: ResolvedPath) => Promise<T>): Promise<T>;
}

export interface ResolveOptions {
  /** Whether to follow a link in the last part. */
  followLast: boolean;
  /** Whether to create missing parent directories. */
  makeDirectories?: boolean;
}

export interface ResolvedPath {
  directory: ConfinedDirectory;
  /** null if the path is the root, which is `directory` itself. */
  name: Buffer | null;
  /** The path from the root, with links resolved. */
  parts: readonly Buffer[];
}

const maxLinks = 40;
const maxParts = 512;

export async function openWorkspace(root: string): Promise<Workspace> {
  const absolute = resolve(root);
  const real = await realpath(absolute).catch((error: unknown) => {
    const errno = getErrno(error);
    const reason = errno === "ENOENT" ? "it does not exist." : (explainErrno(errno) ?? String(error));
    const code = errno === "ENOTDIR" ? "not_a_folder" : "not_found";
    throw new ToolFailure(code, `The workspace ${root} cannot be opened: ${reason}`);
  });
  if (!(await stat(real)).isDirectory())
    throw new ToolFailure("not_a_folder", `The workspace ${root} is not a directory.`);
  return {
    root: real,
    async withPath(path, options, use) {
      const walker = new PathWalker([real, absolute], await openRealDirectory(real));
      try {
        return await use(await walker.walk(path, options));
      } finally {
        await walker.close();
      }
    },
  };
}

class PathWalker {
  /** The root's real path, and its path before links were resolved. */
  readonly #roots: readonly string[];
  readonly #open: ConfinedDirectory[];
  readonly #parts: Buffer[] = [];

  constructor(roots: readonly string[], directory: ConfinedDirectory) {
    this.#roots = roots;
    this.#open = [directory];
  }

  async walk(path: string, options: ResolveOptions): Promise<ResolvedPath> {
    const remaining = this.#split(Buffer.from(path), path);
    let links = 0;
    for (;;) {
      const name = remaining.shift();
      const directory = this.#open.at(-1)!;
      if (name === undefined) return this.#currentDirectory();
      if (name.equals(dotDot)) {
        await this.#leave(path);
        continue;
      }
      const isLast = remaining.length === 0;
      if (isLast && !options.followLast) return { directory, name, parts: [...this.#parts, name] };
      const target = await readLinkTarget(directory, name);
      if (target !== null) {
        if (++links > maxLinks) throw new ToolFailure("outside_workspace", `${path}: too many symbolic links.`);
        remaining.unshift(...(await this.#resolveLink(target, path)));
      } else if (isLast) return { directory, name, parts: [...this.#parts, name] };
      else await this.#enter(name, options.makeDirectories === true);
    }
  }

  async close(): Promise<void> {
    for (const directory of this.#open.splice(0).toReversed()) await directory.close();
  }

  /** The path ended at an open directory (empty, `.` or a trailing `..`). Returns its parent and its name there. */
  async #currentDirectory(): Promise<ResolvedPath> {
    const name = this.#parts.at(-1);
    if (name === undefined) return { directory: this.#open[0]!, name: null, parts: [] };
    return { directory: this.#open.at(-2)!, name, parts: [...this.#parts] };
  }

  #split(path: Buffer, originalPath: string): Buffer[] {
    if (path.includes(0)) throw new ToolFailure("invalid_input", "A path cannot contain a NUL byte.");
    const text = path.toString("latin1");
    const parts = this.#relativeToRoot(text, originalPath).split("/");
    if (parts.length > maxParts) throw new ToolFailure("invalid_input", `The path has more than ${maxParts} parts.`);
    return parts.filter((part) => part !== "" && part !== ".").map((part) => Buffer.from(part, "latin1"));
  }

  /** Converts an absolute path inside the workspace to a relative one. Rejects other absolute paths. */
  #relativeToRoot(path: string, originalPath: string): string {
    if (!path.startsWith("/")) return path;
    for (const rootPath of this.#roots) {
      const root = Buffer.from(rootPath).toString("latin1");
      if (path === root) return "";
      if (path.startsWith(root + sep)) return path.slice(root.length + 1);
    }
    throw outsideWorkspace(originalPath);
  }

  async #resolveLink(target: Buffer, originalPath: string): Promise<Buffer[]> {
    const parts = this.#split(target, originalPath);
    if (target[0] === 0x2f) while (this.#parts.length > 0) await this.#leave(originalPath);
    return parts;
  }

  async #enter(name: Buffer, createMissing: boolean): Promise<void> {
    const directory = this.#open.at(-1)!;
    if (createMissing)
      await directory.makeDirectory(name).catch((error: unknown) => {
        if (getErrno(error) !== "EEXIST") throw error;
      });
    this.#open.push(await directory.openDirectory(name));
    this.#parts.push(name);
  }

  async #leave(originalPath: string): Promise<void> {
    if (this.#parts.pop() === undefined) throw outsideWorkspace(originalPath);
    await this.#open.pop()!.close();
  }
}

const dotDot = Buffer.from("..");

/**
 * Returns null if the name is not a link. Calls stat first, because an error from readlink costs more than the stat.
 */
async function readLinkTarget(directory: ConfinedDirectory, name: Buffer): Promise<Buffer | null> {
  try {
    return (await directory.stat(name)).isSymbolicLink() ? await directory.readLink(name) : null;
  } catch (error) {
    // EINVAL: it is no longer a link; ENOENT: it is missing, and the next step reports or creates it.
    if (["EINVAL", "ENOENT"].includes(getErrno(error))) return null;
    throw error;
  }
}

function outsideWorkspace(path: string): ToolFailure {
  return new ToolFailure(
    "outside_workspace",
    `${path} is outside the workspace. Paths are relative to the workspace's root.`,
  );
}
