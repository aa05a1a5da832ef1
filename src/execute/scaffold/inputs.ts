import { lstat, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Invocation } from "../../model/executor.ts";
import { getWorkspaceKind } from "../workspace/workspace-kind.ts";
import { RunFailure } from "./run-failure.ts";

/** Files that an executor writes into the work directory for its program to read. */
export interface Inputs {
  write(name: string, content: string | Uint8Array): Promise<string>;
  /** The names of the files in the work directory. */
  readonly names: ReadonlySet<string>;
  /** Removes the files from a user's directory. A scratch directory keeps them for its session. */
  remove(): Promise<void>;
}

export function createInputs(invocation: Invocation, workDir: string): Inputs {
  const names = new Set<string>();
  const isUsersDirectory = getWorkspaceKind(invocation) !== "scratch";
  return {
    names,
    async write(name, content) {
      if (name === "" || name === "." || name === ".." || /[/\0]/.test(name))
        throw new RunFailure(
          "internal",
          `An input must be a file name without a directory, not ${JSON.stringify(name)}.`,
        );
      if (!(await isDirectory(workDir)))
        throw new RunFailure("refused", `${workDir} is no longer a directory: a process of the run replaced it.`);
      const path = join(workDir, name);
      // delete an input of an earlier turn first, so that no link in its place is followed; never touch a user's file
      if (!isUsersDirectory || names.has(name)) await rm(path, { force: true, recursive: true });
      try {
        await writeFile(path, content, { flag: "wx", mode: 0o600 });
      } catch (error) {
        if (error instanceof Error && "code" in error && error.code === "EEXIST")
          throw new RunFailure(
            "refused",
            `${name} already exists in ${workDir}, and the run would overwrite it. Rename or remove it.`,
          );
        throw error;
      }
      names.add(name);
      return path;
    },
    async remove() {
      if (!isUsersDirectory || !(await isDirectory(workDir))) return;
      for (const name of names) await rm(join(workDir, name), { force: true, recursive: true });
    },
  };
}

/** A process of the run may have replaced the directory with a link. */
async function isDirectory(path: string): Promise<boolean> {
  const stats = await lstat(path).catch(() => null); // an inaccessible path cannot be written either
  return stats?.isDirectory() ?? false;
}
