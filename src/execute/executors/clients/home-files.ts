import { constants } from "node:fs";
import { copyFile, lstat, mkdir, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, normalize } from "node:path";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { Turn } from "./definition.ts";

/** The HOME of the user who runs the runner. */
export function operatorHome({ env }: Pick<Turn, "env">): string {
  return env["HOME"] ?? homedir();
}

export async function hasOwnHome(turn: Pick<Turn, "env" | "homeDir">): Promise<boolean> {
  return (await resolveLinks(turn.homeDir)) !== (await resolveLinks(operatorHome(turn)));
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
export async function copyHomeFiles(from: string, to: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const source = await lstatIfExists(join(from, name));
    if (source === null) continue;
    const target = join(await openSubdirectory(to, dirname(name)), basename(name));
    if ((await lstatIfExists(target)) !== null) continue;
    if (!source.isFile())
      throw new RunFailure("refused", `${join(from, name)} is listed in home_files but is not a plain file.`);
    await copyFile(join(from, name), target, constants.COPYFILE_EXCL);
  }
}

/**
 * Opens a directory in a session's own HOME. Refuses links, because an earlier run may have put one there to make the
 * runner, which has more rights, write elsewhere.
 */
export async function openSubdirectory(homeDir: string, name: string): Promise<string> {
  let path = homeDir;
  for (const part of normalize(name).split("/")) {
    if (part === "" || part === ".") continue;
    path = join(path, part);
    await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    });
    if (!(await lstat(path)).isDirectory())
      throw new RunFailure(
        "refused",
        `${path} is a link or a file, but the session needs a directory there. Start a new session.`,
      );
  }
  return path;
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

async function lstatIfExists(path: string) {
  return lstat(path).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
