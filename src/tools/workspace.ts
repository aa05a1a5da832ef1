import { realpath, stat } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { type ConfinedDirectory, openConfinedDirectory } from "./confined-directory.ts";
import { errnoOf, ToolFailure } from "./tool-failure.ts";

/** The one directory that file tools can access. Paths are opened one part at a time, never passed to the kernel whole. */
export interface Workspace {
  readonly root: string;
  /** Resolves a path, following links inside the workspace. The directories on the way stay open while `use` runs. */
  at<T>(path: string, walk: Walk, use: (location: Located) => Promise<T>): Promise<T>;
}

export interface Walk {
  /** Follow a link in the last part too. */
  followLast: boolean;
  /** Create missing directories on the way. */
  makeDirectories?: boolean;
}

export interface Located {
  directory: ConfinedDirectory;
  /** null if the path is the root, which is `directory` itself. */
  name: Buffer | null;
  /** The path from the root, with links resolved. */
  parts: readonly Buffer[];
}

const maxLinks = 40;
const maxParts = 512;

export async function openWorkspace(root: string): Promise<Workspace> {
  const given = resolve(root);
  const real = await realpath(given).catch((error: unknown) => {
    throw new ToolFailure("not_found", `The workspace ${root} cannot be used: ${errnoOf(error) || String(error)}.`);
  });
  if (!(await stat(real)).isDirectory())
    throw new ToolFailure("not_a_folder", `The workspace ${root} is not a directory.`);
  return {
    root: real,
    async at(path, walk, use) {
      const walker = new PathWalker([real, given], await openConfinedDirectory(real));
      try {
        return await use(await walker.walk(path, walk));
      } finally {
        await walker.close();
      }
    },
  };
}

class PathWalker {
  /** The root's real path, and the path as given. */
  readonly #roots: readonly string[];
  readonly #open: ConfinedDirectory[];
  readonly #parts: Buffer[] = [];

  constructor(roots: readonly string[], directory: ConfinedDirectory) {
    this.#roots = roots;
    this.#open = [directory];
  }

  async walk(path: string, walk: Walk): Promise<Located> {
    const remaining = this.#split(Buffer.from(path), path);
    let links = 0;
    for (;;) {
      const name = remaining.shift();
      const here = this.#open.at(-1)!;
      if (name === undefined) return this.#currentDirectory();
      if (name.equals(dotDot)) {
        await this.#up(path);
        continue;
      }
      const last = remaining.length === 0;
      if (last && !walk.followLast) return { directory: here, name, parts: [...this.#parts, name] };
      const target = await linkTarget(here, name);
      if (target !== null) {
        if (++links > maxLinks) throw new ToolFailure("outside_workspace", `${path}: too many symbolic links.`);
        remaining.unshift(...(await this.#expand(target, path)));
      } else if (last) return { directory: here, name, parts: [...this.#parts, name] };
      else await this.#down(name, walk.makeDirectories === true);
    }
  }

  async close(): Promise<void> {
    for (const directory of this.#open.splice(0).toReversed()) await directory.close();
  }

  /** A path that ends in `..` or consists of dots names a directory. Returns it as a name in its parent. */
  async #currentDirectory(): Promise<Located> {
    const name = this.#parts.at(-1);
    if (name === undefined) return { directory: this.#open[0]!, name: null, parts: [] };
    return { directory: this.#open.at(-2)!, name, parts: [...this.#parts] };
  }

  #split(path: Buffer, shown: string): Buffer[] {
    if (path.includes(0)) throw new ToolFailure("invalid_input", "A path cannot contain a NUL byte.");
    const text = path.toString("latin1");
    const parts = this.#inside(text, shown).split("/");
    if (parts.length > maxParts) throw new ToolFailure("invalid_input", `The path has more than ${maxParts} parts.`);
    return parts.filter((part) => part !== "" && part !== ".").map((part) => Buffer.from(part, "latin1"));
  }

  /** Accepts an absolute path if it is inside the workspace. */
  #inside(path: string, shown: string): string {
    if (!path.startsWith("/")) return path;
    for (const each of this.#roots) {
      const root = Buffer.from(each).toString("latin1");
      if (path === root) return "";
      if (path.startsWith(root + sep)) return path.slice(root.length + 1);
    }
    throw outside(shown);
  }

  async #expand(target: Buffer, shown: string): Promise<Buffer[]> {
    const parts = this.#split(target, shown);
    if (target[0] === 0x2f) while (this.#parts.length > 0) await this.#up(shown);
    return parts;
  }

  async #down(name: Buffer, make: boolean): Promise<void> {
    const here = this.#open.at(-1)!;
    if (make)
      await here.makeDirectory(name).catch((error: unknown) => {
        if (errnoOf(error) !== "EEXIST") throw error;
      });
    this.#open.push(await here.directory(name));
    this.#parts.push(name);
  }

  async #up(shown: string): Promise<void> {
    if (this.#parts.pop() === undefined) throw outside(shown);
    await this.#open.pop()!.close();
  }
}

const dotDot = Buffer.from("..");

/** Checks first, because readlink on a regular file throws, and the error costs more than the check. */
async function linkTarget(directory: ConfinedDirectory, name: Buffer): Promise<Buffer | null> {
  try {
    return (await directory.stat(name)).isSymbolicLink() ? await directory.link(name) : null;
  } catch (error) {
    // EINVAL: no longer a link; ENOENT: missing, which the next step reports or creates
    if (["EINVAL", "ENOENT"].includes(errnoOf(error))) return null;
    throw error;
  }
}

function outside(path: string): ToolFailure {
  return new ToolFailure(
    "outside_workspace",
    `${path} is outside the workspace. Paths are relative to the workspace's root.`,
  );
}
