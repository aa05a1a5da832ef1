import { lstat, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Invocation } from "../../model/executor.ts";
import { workspaceKindOf } from "../workspace/workspace-kind.ts";
import { RunFailure } from "./run-failure.ts";

/** Files that an executor puts into the work directory for its program to read. */
export interface Inputs {
  write(name: string, content: string | Uint8Array): Promise<string>;
  /** By their names in the work directory. */
  readonly names: ReadonlySet<string>;
  /** Out of a directory that belongs to a person; a scratch one keeps them for its session. */
  remove(): Promise<void>;
}

export function createInputs(invocation: Invocation, workDir: string): Inputs {
  const names = new Set<string>();
  const isTheirs = workspaceKindOf(invocation) !== "scratch";
  return {
    names,
    async write(name, content) {
      if (name === "" || name === "." || name === ".." || /[/\0]/.test(name))
        throw new RunFailure("internal", `An input is a file name without folders, not ${JSON.stringify(name)}.`);
      if (!(await isFolder(workDir)))
        throw new RunFailure("refused", `${workDir} is no longer a folder: a process of the run replaced it.`);
      const path = join(workDir, name);
      // one of an earlier turn goes first, so that no link in its place is followed; a person's file is never touched
      if (!isTheirs || names.has(name)) await rm(path, { force: true, recursive: true });
      try {
        await writeFile(path, content, { flag: "wx", mode: 0o600 });
      } catch (error) {
        if (error instanceof Error && "code" in error && error.code === "EEXIST")
          throw new RunFailure("refused", `${name} exists in ${workDir}, and the run would overwrite it.`);
        throw error;
      }
      names.add(name);
      return path;
    },
    async remove() {
      if (!isTheirs || !(await isFolder(workDir))) return;
      for (const name of names) await rm(join(workDir, name), { force: true, recursive: true });
    },
  };
}

/** A link that a process of the run put in its place leads elsewhere. */
async function isFolder(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null); // what cannot be seen is no place to write to
  return found?.isDirectory() ?? false;
}
