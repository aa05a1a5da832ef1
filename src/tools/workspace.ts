import { realpath, stat } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { type ConfinedDirectory, openConfinedDirectory } from "./confined-directory.ts";
import { errnoOf, ToolFailure } from "./tool-failure.ts";

/** The one folder that file tools reach into. Paths are walked descriptor by descriptor, never handed to the kernel whole. */
export interface Workspace {
  readonly root: string;
  /** Where a path leads, with links inside the workspace followed. The folders on the way stay open while `use` works. */
  at<T>(path: string, walk: Walk, use: (place: Located) => Promise<T>): Promise<T>;
}

export interface Walk {
  /** Follow a link in the last name as well. */
  followLast: boolean;
  /** Make the folders on the way that are missing. */
  makeFolders?: boolean;
}

export interface Located {
  folder: ConfinedDirectory;
  /** null: the path names `folder` itself, which is the root. */
  name: Buffer | null;
  /** From the root, with links resolved. */
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
    throw new ToolFailure("not_a_folder", `The workspace ${root} is not a folder.`);
  return {
    root: real,
    async at(path, walk, use) {
      const steps = new Steps([real, given], await openConfinedDirectory(real));
      try {
        return await use(await steps.walk(path, walk));
      } finally {
        await steps.close();
      }
    },
  };
}

class Steps {
  /** The root by its real path, and as it was given. */
  readonly #roots: readonly string[];
  readonly #open: ConfinedDirectory[];
  readonly #parts: Buffer[] = [];

  constructor(roots: readonly string[], folder: ConfinedDirectory) {
    this.#roots = roots;
    this.#open = [folder];
  }

  async walk(path: string, walk: Walk): Promise<Located> {
    const todo = this.#split(Buffer.from(path), path);
    let links = 0;
    for (;;) {
      const name = todo.shift();
      const here = this.#open.at(-1)!;
      if (name === undefined) return this.#folderItself();
      if (name.equals(dotDot)) {
        await this.#up(path);
        continue;
      }
      const last = todo.length === 0;
      if (last && !walk.followLast) return { folder: here, name, parts: [...this.#parts, name] };
      const target = await linkTarget(here, name);
      if (target !== null) {
        if (++links > maxLinks) throw new ToolFailure("outside_workspace", `${path}: too many symbolic links.`);
        todo.unshift(...(await this.#expand(target, path)));
      } else if (last) return { folder: here, name, parts: [...this.#parts, name] };
      else await this.#down(name, walk.makeFolders === true);
    }
  }

  async close(): Promise<void> {
    for (const folder of this.#open.splice(0).toReversed()) await folder.close();
  }

  /** A path that ends in `..` or consists of dots names a folder: give it as a name in the folder above it. */
  async #folderItself(): Promise<Located> {
    const name = this.#parts.at(-1);
    if (name === undefined) return { folder: this.#open[0]!, name: null, parts: [] };
    return { folder: this.#open.at(-2)!, name, parts: [...this.#parts] };
  }

  #split(path: Buffer, shown: string): Buffer[] {
    if (path.includes(0)) throw new ToolFailure("invalid_input", "A path cannot contain a NUL byte.");
    const text = path.toString("latin1");
    const parts = this.#inside(text, shown).split("/");
    if (parts.length > maxParts) throw new ToolFailure("invalid_input", `The path has more than ${maxParts} parts.`);
    return parts.filter((part) => part !== "" && part !== ".").map((part) => Buffer.from(part, "latin1"));
  }

  /** An absolute path is accepted where it names something in the workspace. */
  #inside(path: string, shown: string): string {
    if (!path.startsWith("/")) return path;
    for (const one of this.#roots) {
      const root = Buffer.from(one).toString("latin1");
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

/** Looked at first: asking for the target of what is no link makes an error, which costs more than the look. */
async function linkTarget(folder: ConfinedDirectory, name: Buffer): Promise<Buffer | null> {
  try {
    return (await folder.stat(name)).isSymbolicLink() ? await folder.link(name) : null;
  } catch (error) {
    // EINVAL: no link any more; ENOENT: nothing there, which the next step reports or makes
    if (["EINVAL", "ENOENT"].includes(errnoOf(error))) return null;
    throw error;
  }
}

function outside(path: string): ToolFailure {
  return new ToolFailure(
    "outside_workspace",
    `${path} leads outside the workspace. Paths are relative to the workspace's root.`,
  );
}
