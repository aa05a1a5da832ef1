import { constants } from "node:fs";
import { copyFile, lstat, mkdir, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, normalize } from "node:path";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { Turn } from "./definition.ts";

/** The HOME of whoever runs the runner. */
export function operatorHome({ env }: Pick<Turn, "env">): string {
  return env["HOME"] ?? homedir();
}

export async function hasOwnHome(turn: Pick<Turn, "env" | "homeDir">): Promise<boolean> {
  return (await realOf(turn.homeDir)) !== (await realOf(operatorHome(turn)));
}

/** Which files a HOME of the session's own begins with: the profile's `home_files`, else the client's. */
export function homeFilesOf(config: Readonly<Record<string, unknown>>, usual: readonly string[]): readonly string[] {
  const named = config["home_files"];
  if (named === undefined) return usual;
  if (Array.isArray(named) && named.every((name): name is string => typeof name === "string" && staysInside(name)))
    return named;
  throw new RunFailure(
    "refused",
    'home_files in the profile\'s config is a list of paths below HOME, such as [".codex/auth.json"].',
  );
}

/**
 * The operator's login and settings for a HOME of the session's own, at its first use. What is there stays: a
 * session keeps what it has made of them. What the operator has not got is left out.
 */
export async function copyHomeFiles(from: string, to: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const source = await lstatOf(join(from, name));
    if (source === null) continue;
    const target = join(await openFolder(to, dirname(name)), basename(name));
    if ((await lstatOf(target)) !== null) continue;
    if (!source.isFile())
      throw new RunFailure("refused", `${join(from, name)} is in home_files and is not a plain file.`);
    await copyFile(join(from, name), target, constants.COPYFILE_EXCL);
  }
}

/**
 * A folder in a HOME of the session's own. Runs before may have put a link in its place or above it, to have something
 * written elsewhere by a runner that may write more than they.
 */
export async function openFolder(homeDir: string, name: string): Promise<string> {
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
        `${path} is a link or a file, where the session's own folder has to be. Start a new session.`,
      );
  }
  return path;
}

function staysInside(name: string): boolean {
  return name !== "" && !isAbsolute(name) && !normalize(name).split("/").includes("..");
}

async function realOf(path: string): Promise<string> {
  return realpath(path).catch((error: unknown) => {
    if (isMissing(error)) return path;
    throw error;
  });
}

async function lstatOf(path: string) {
  return lstat(path).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
