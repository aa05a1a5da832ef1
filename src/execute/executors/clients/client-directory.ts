import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import type { ConfinedDirectory } from "../../../tools/confined-directory.ts";
import { errorCode, vanishedCodes } from "../../scaffold/find-files.ts";
import { createFile, type EnterOptions, inDirectory, toPathParts } from "../../scaffold/directory-walker.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { ClientDirectory, Turn } from "./definition.ts";
import { hasOwnHome, getOperatorHome } from "./home-files.ts";

/**
 * Opens the client's directory: `name` in the session's own HOME. If the run uses the operator's HOME, opens `override`
 * if the operator has configured it, otherwise `name` there.
 */
export async function openClientDirectory(
  turn: Pick<Turn, "env" | "homeDir" | "invocation">,
  { name, override }: { name: string; override?: string | undefined },
): Promise<ClientDirectory> {
  if (await hasOwnHome(turn)) return createClientDirectory(turn.homeDir, [name], turn.invocation.run_id);
  const operatorPath = override || join(getOperatorHome(turn), name);
  await mkdir(operatorPath, { recursive: true, mode: 0o700 });
  // The operator may have made it a symlink.
  return createClientDirectory(await realpath(operatorPath), [], turn.invocation.run_id);
}

function createClientDirectory(root: string, prefix: readonly string[], run_id: string): ClientDirectory {
  const splitPath = (path: string): Buffer[] => toPathParts([...prefix, path].join("/"));

  /** Returns null if the directory does not exist, or if a link or a file is in its place. */
  async function inDirectoryOrNull<T>(
    parts: readonly Buffer[],
    act: (directory: ConfinedDirectory) => Promise<T>,
    options: EnterOptions = {},
  ): Promise<T | null> {
    try {
      return await inDirectory(root, parts, act, options);
    } catch (error) {
      if (vanishedCodes.has(errorCode(error))) return null;
      throw error;
    }
  }
  const withFile = <T>(
    path: string,
    act: (directory: ConfinedDirectory, name: Buffer) => Promise<T>,
  ): Promise<T | null> => {
    const parts = splitPath(path);
    return inDirectoryOrNull(parts.slice(0, -1), (directory) => act(directory, parts.at(-1)!));
  };

  return {
    async listNames(path) {
      const names: string[] = [];
      await inDirectoryOrNull(splitPath(path), async (directory) => {
        for await (const entries of directory.entries(64))
          names.push(...entries.map(({ name }) => name.toString("utf8")));
      });
      return names;
    },
    stat: (path) =>
      withFile(path, async (directory, name) => {
        const stat = await directory.stat(name);
        return stat.isFile() ? { size: Number(stat.size), changedAt: Number(stat.mtimeMs) } : null;
      }),
    read: (path, maxBytes) =>
      withFile(path, async (directory, name) => {
        const file = await directory.openFile(name);
        try {
          const { size } = await file.stat();
          const buffer = Buffer.alloc(Math.min(size, maxBytes));
          let offset = 0;
          for (let bytesRead = 1; bytesRead > 0 && offset < buffer.length; offset += bytesRead)
            ({ bytesRead } = await file.read(buffer, offset, buffer.length - offset, offset));
          return buffer.subarray(0, offset);
        } finally {
          await file.close();
        }
      }),
    async write(path, bytes) {
      const parts = splitPath(path);
      const replace = async (directory: ConfinedDirectory): Promise<true> => {
        const temporary = `.${run_id}.aside`;
        await directory.remove(Buffer.from(temporary)).catch((error: unknown) => {
          if (errorCode(error) !== "ENOENT") throw error;
        });
        await createFile(directory, temporary, bytes, 0o600);
        await directory.rename(Buffer.from(temporary), parts.at(-1)!);
        return true;
      };
      const isWritten = await inDirectoryOrNull(parts.slice(0, -1), replace, { create: true });
      if (isWritten === null) throw pathBlocked(join(root, ...prefix, path));
    },
  };
}

function pathBlocked(path: string): RunFailure {
  return new RunFailure(
    "refused",
    `Cannot restore the session's conversation to ${path}: a link or a file is in the way. Start a new session.`,
  );
}
