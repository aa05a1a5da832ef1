import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, normalize } from "node:path";
import type { ConfinedDirectory } from "../../../tools/confined-directory.ts";
import { createFile, inDirectory, toPathParts } from "../../scaffold/directory-walker.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { Turn } from "./definition.ts";

/** The HOME of the user who runs the runner. */
export function getOperatorHome({ env }: Pick<Turn, "env">): string {
  return env["HOME"] ?? homedir();
}

export async function hasOwnHome(turn: Pick<Turn, "env" | "homeDir">): Promise<boolean> {
  return (await resolveLinks(turn.homeDir)) !== (await resolveLinks(getOperatorHome(turn)));
}

/** Returns the files to copy into a session's own HOME: the profile's `home_files`, or the client's defaults. */
export function readHomeFiles(
  config: Readonly<Record<string, unknown>>,
  defaults: readonly string[],
): readonly string[] {
  const homeFiles = config["home_files"];
  if (homeFiles === undefined) return defaults;
  if (
    Array.isArray(homeFiles) &&
    homeFiles.every((name): name is string => typeof name === "string" && isBelowHome(name))
  )
    return homeFiles;
  throw new RunFailure(
    "refused",
    'home_files in the profile\'s config must be a list of paths below HOME, such as [".codex/auth.json"].',
  );
}

/**
 * Copies the operator's login and settings into a session's own HOME on its first use. Skips files that the session
 * already has, because it may have changed them, and files that the operator does not have.
 */
export async function copyHomeFiles(sourceHome: string, targetHome: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const source = await readSource(join(sourceHome, name));
    if (source === null) continue;
    await inSubdirectory(targetHome, dirname(name), (directory) =>
      createFile(directory, basename(name), source.content, source.mode).catch((error: unknown) => {
        if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
      }),
    );
  }
}

/** Returns null for a missing file. Does not follow links, because a run may be able to write to the operator's HOME. */
async function readSource(path: string): Promise<{ content: Buffer; mode: number } | null> {
  const createRefusal = (cause?: unknown): RunFailure =>
    new RunFailure(
      "refused",
      `${path} cannot be copied into the session's HOME, because it is not a regular file. Replace it, or omit it from home_files in the profile's config.`,
      { cause },
    );
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (error: unknown) => {
      if (isMissing(error)) return null;
      throw error instanceof Error && "code" in error && ["ELOOP", "ENXIO"].includes(String(error.code))
        ? createRefusal(error)
        : error;
    },
  );
  if (file === null) return null;
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw createRefusal();
    return { content: await file.readFile(), mode: stats.mode & 0o777 };
  } finally {
    await file.close();
  }
}

/** Creates a directory in a session's own HOME, and returns its path. Refuses links as `inSubdirectory` does. */
export async function createSubdirectory(homeDir: string, name: string): Promise<string> {
  await inSubdirectory(homeDir, name, async () => undefined);
  return join(homeDir, name);
}

/**
 * Opens a directory in a session's own HOME while `act` runs, and creates it if it is missing. Refuses links, because
 * an earlier run may have put one there to make the runner, which has more rights, write elsewhere.
 */
export async function inSubdirectory<T>(
  homeDir: string,
  name: string,
  act: (directory: ConfinedDirectory) => Promise<T>,
): Promise<T> {
  try {
    return await inDirectory(homeDir, toPathParts(normalize(name)), act, { create: true });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && ["ENOTDIR", "ELOOP"].includes(String(error.code)))) throw error;
    throw new RunFailure(
      "refused",
      `${join(homeDir, name)} is a link or a file, but the session needs a directory there. Start a new session.`,
      { cause: error },
    );
  }
}

function isBelowHome(name: string): boolean {
  return name !== "" && !isAbsolute(name) && !normalize(name).split("/").includes("..");
}

async function resolveLinks(path: string): Promise<string> {
  return realpath(path).catch((error: unknown) => {
    if (isMissing(error)) return path;
    throw error;
  });
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
