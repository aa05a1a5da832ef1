import { join } from "node:path";
import type { Invocation } from "../../model/executor.ts";
import { removeTree } from "../workspace/remove-tree.ts";
import { getWorkspaceKind } from "../workspace/workspace-kind.ts";
import type { ConfinedDirectory } from "../../tools/confined-directory.ts";
import { createFile, inDirectory } from "./directory-walker.ts";
import { errorCode, vanishedCodes } from "./find-files.ts";
import { RunFailure } from "./run-failure.ts";

/** Files that an executor writes into the work directory for its program to read. */
export interface Inputs {
  write(name: string, content: string | Uint8Array): Promise<string>;
  /** The names of the files in the work directory. */
  readonly names: ReadonlySet<string>;
  /** Removes the files from a user's directory. A scratch directory keeps them for its session. */
  remove(): Promise<void>;
}

/** `workDir` is a real path, so no link on the way to it is followed. */
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
      const path = join(workDir, name);
      // Delete an input of an earlier turn first, so that no link in its place is followed; never touch a user's file.
      const isOwn = !isUsersDirectory || names.has(name);
      try {
        const write = async (directory: ConfinedDirectory): Promise<void> => {
          if (isOwn) await removeTree("/", path);
          await createFile(directory, name, content, 0o600);
        };
        await inDirectory(workDir, [], write, { real: true });
      } catch (error) {
        if (errorCode(error) === "EEXIST")
          throw new RunFailure(
            "refused",
            `${name} already exists in ${workDir}, and the run would overwrite it. Rename or remove it.`,
          );
        if (vanishedCodes.has(errorCode(error)))
          throw new RunFailure("refused", `${workDir} is no longer a directory: a process of the run replaced it.`);
        throw error;
      }
      names.add(name);
      return path;
    },
    async remove() {
      if (!isUsersDirectory) return;
      for (const name of names)
        await removeTree("/", join(workDir, name)).catch((error: unknown) => {
          // A process of the run replaced the directory.
          if (!vanishedCodes.has(errorCode(error))) throw error;
        });
    },
  };
}
