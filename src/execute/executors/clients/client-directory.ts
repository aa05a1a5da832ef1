import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { BugError } from "../../../model/errors.ts";
import type { ConfinedDirectory } from "../../../tools/confined-directory.ts";
import { codeOf, gone } from "../../scaffold/find-files.ts";
import { openDirectoryWalker } from "../../scaffold/directory-walker.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { ClientDirectory, Turn } from "./definition.ts";
import { hasOwnHome, operatorHome } from "./home-files.ts";

/** `name` is the directory's name below HOME. `override` is another path that the operator has configured for it. */
export async function openClientDirectory(
  turn: Pick<Turn, "env" | "homeDir" | "invocation">,
  { name, override }: { name: string; override?: string | undefined },
): Promise<ClientDirectory> {
  if (await hasOwnHome(turn)) return directoryBelow(turn.homeDir, [name], turn.invocation.run_id);
  const theirs = override || join(operatorHome(turn), name);
  await mkdir(theirs, { recursive: true, mode: 0o700 });
  // the operator may have made it a symlink
  return directoryBelow(await realpath(theirs), [], turn.invocation.run_id);
}

function directoryBelow(root: string, above: readonly string[], run_id: string): ClientDirectory {
  const partsOf = (path: string): Buffer[] => {
    const parts = [...above, ...path.split("/")].filter((part) => part !== "");
    if (parts.includes("..")) throw new BugError(`${path} leaves the client's directory`);
    return parts.map((part) => Buffer.from(part));
  };

  async function inDirectory<T>(
    parts: readonly Buffer[],
    act: (directory: ConfinedDirectory) => Promise<T>,
  ): Promise<T | null> {
    const walker = openDirectoryWalker(root);
    try {
      return await act(await walker.enter(parts));
    } catch (error) {
      if (gone.has(codeOf(error))) return null;
      throw error;
    } finally {
      await walker.close();
    }
  }
  const withFile = <T>(
    path: string,
    act: (directory: ConfinedDirectory, name: Buffer) => Promise<T>,
  ): Promise<T | null> => {
    const parts = partsOf(path);
    return inDirectory(parts.slice(0, -1), (directory) => act(directory, parts.at(-1)!));
  };

  return {
    async names(path) {
      const names: string[] = [];
      await inDirectory(partsOf(path), async (directory) => {
        for await (const found of directory.entries(64)) names.push(...found.map(({ name }) => name.toString("utf8")));
      });
      return names;
    },
    stat: (path) =>
      withFile(path, async (directory, name) => {
        const seen = await directory.stat(name);
        return seen.isFile() ? { size: Number(seen.size), changedAt: Number(seen.mtimeMs) } : null;
      }),
    read: (path, maxBytes) =>
      withFile(path, async (directory, name) => {
        const file = await directory.file(name);
        try {
          const { size } = await file.stat();
          const buffer = Buffer.alloc(Math.min(size, maxBytes));
          let at = 0;
          for (let read = 1; read > 0 && at < buffer.length; at += read)
            ({ bytesRead: read } = await file.read(buffer, at, buffer.length - at, at));
          return buffer.subarray(0, at);
        } finally {
          await file.close();
        }
      }),
    async write(path, bytes) {
      const parts = partsOf(path);
      for (const depth of parts.slice(0, -1).keys()) await makeDirectory(parts.slice(0, depth + 1));
      const written = await inDirectory(parts.slice(0, -1), async (directory) => {
        const name = parts.at(-1)!;
        const temporary = Buffer.from(`.${run_id}.aside`);
        await directory.remove(temporary).catch((error: unknown) => {
          if (codeOf(error) !== "ENOENT") throw error;
        });
        const file = await directory.create(temporary, 0o600);
        try {
          await file.writeFile(bytes);
        } finally {
          await file.close();
        }
        await directory.rename(temporary, name);
        return true;
      });
      if (written === null) throw pathBlocked(join(root, ...above, path));
    },
  };

  async function makeDirectory(parts: readonly Buffer[]): Promise<void> {
    const made = await inDirectory(parts.slice(0, -1), async (directory) => {
      await directory.makeDirectory(parts.at(-1)!).catch((error: unknown) => {
        if (codeOf(error) !== "EEXIST") throw error;
      });
      return true;
    });
    if (made === null) throw pathBlocked(join(root, Buffer.concat(parts).toString("utf8")));
  }
}

function pathBlocked(path: string): RunFailure {
  return new RunFailure(
    "refused",
    `Cannot restore the session's conversation to ${path}: a link or a file is in the way. Start a new session.`,
  );
}
