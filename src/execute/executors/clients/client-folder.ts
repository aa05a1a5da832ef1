import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { BugError } from "../../../model/errors.ts";
import type { ConfinedFolder } from "../../../tools/confined-folder.ts";
import { codeOf, gone } from "../../scaffold/find-files.ts";
import { openPlace } from "../../scaffold/open-place.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { ClientFolder, Turn } from "./definition.ts";
import { hasOwnHome, operatorHome } from "./home-files.ts";

/** `name` is what it is called below HOME; `elsewhere` is where the operator keeps it, if that is another place. */
export async function openClientFolder(
  turn: Pick<Turn, "env" | "homeDir" | "invocation">,
  { name, elsewhere }: { name: string; elsewhere?: string | undefined },
): Promise<ClientFolder> {
  if (await hasOwnHome(turn)) return folderBelow(turn.homeDir, [name], turn.invocation.run_id);
  const theirs = elsewhere || join(operatorHome(turn), name);
  await mkdir(theirs, { recursive: true, mode: 0o700 });
  // the operator's own may well be a link
  return folderBelow(await realpath(theirs), [], turn.invocation.run_id);
}

function folderBelow(root: string, above: readonly string[], run_id: string): ClientFolder {
  const partsOf = (path: string): Buffer[] => {
    const parts = [...above, ...path.split("/")].filter((part) => part !== "");
    if (parts.includes("..")) throw new BugError(`${path} leads out of the folder of a client`);
    return parts.map((part) => Buffer.from(part));
  };

  async function inFolder<T>(parts: readonly Buffer[], act: (folder: ConfinedFolder) => Promise<T>): Promise<T | null> {
    const place = openPlace(root);
    try {
      return await act(await place.goTo(parts));
    } catch (error) {
      if (gone.has(codeOf(error))) return null;
      throw error;
    } finally {
      await place.close();
    }
  }
  const withFile = <T>(path: string, act: (folder: ConfinedFolder, name: Buffer) => Promise<T>): Promise<T | null> => {
    const parts = partsOf(path);
    return inFolder(parts.slice(0, -1), (folder) => act(folder, parts.at(-1)!));
  };

  return {
    async names(path) {
      const names: string[] = [];
      await inFolder(partsOf(path), async (folder) => {
        for await (const found of folder.entries(64)) names.push(...found.map(({ name }) => name.toString("utf8")));
      });
      return names;
    },
    look: (path) =>
      withFile(path, async (folder, name) => {
        const seen = await folder.look(name);
        return seen.isFile() ? { size: Number(seen.size), changedAt: Number(seen.mtimeMs) } : null;
      }),
    read: (path, maxBytes) =>
      withFile(path, async (folder, name) => {
        const file = await folder.file(name);
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
      for (const depth of parts.slice(0, -1).keys()) await makeFolder(parts.slice(0, depth + 1));
      const written = await inFolder(parts.slice(0, -1), async (folder) => {
        const name = parts.at(-1)!;
        const aside = Buffer.from(`.${run_id}.aside`);
        await folder.remove(aside).catch((error: unknown) => {
          if (codeOf(error) !== "ENOENT") throw error;
        });
        const file = await folder.create(aside, 0o600);
        try {
          await file.writeFile(bytes);
        } finally {
          await file.close();
        }
        await folder.rename(aside, name);
        return true;
      });
      if (written === null) throw inTheWay(join(root, ...above, path));
    },
  };

  async function makeFolder(parts: readonly Buffer[]): Promise<void> {
    const made = await inFolder(parts.slice(0, -1), async (folder) => {
      await folder.makeFolder(parts.at(-1)!).catch((error: unknown) => {
        if (codeOf(error) !== "EEXIST") throw error;
      });
      return true;
    });
    if (made === null) throw inTheWay(join(root, Buffer.concat(parts).toString("utf8")));
  }
}

function inTheWay(path: string): RunFailure {
  return new RunFailure(
    "refused",
    `The conversation of the session cannot be put at ${path}: a link or a file is in the way. Start a new session.`,
  );
}
