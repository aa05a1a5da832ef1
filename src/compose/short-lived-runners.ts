import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { recordDirectory, runnersDirectory } from "../model/state-layout.ts";
import type { LoadedProfile } from "../define/profiles.ts";
import { isOwnerAlive } from "../record/audit/owner.ts";

/** A runner that exists for one command. It saves this object in its directory, so that another process can clean up after it. */
export interface ShortLivedRunner {
  name: string;
  projectDir: string;
  loaded: LoadedProfile;
}

const fileName = "short-lived.json";

/** Saves the runner. Call this before the runner registers, so that any process that finds the directory can clean up. */
export function saveShortLivedRunner(directory: string, runner: ShortLivedRunner): void {
  const file = join(directory, fileName);
  writeFileSync(`${file}.new`, JSON.stringify(runner), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** Finds the short-lived runners of this state directory whose process was killed. */
export function findDeadRunners(stateDirectory: string): ShortLivedRunner[] {
  const runners = runnersDirectory(recordDirectory(stateDirectory));
  return listNames(runners).flatMap((name) => {
    const directory = join(runners, name);
    const runner = readJson<ShortLivedRunner>(join(directory, fileName));
    const owner = runner && readJson<Parameters<typeof isOwnerAlive>[0]>(join(directory, "lock"));
    return runner && owner && !isOwnerAlive(owner) ? [runner] : [];
  });
}

/** Returns null if the file does not exist, or if a crash of the machine truncated it. */
function readJson<T>(file: string): T | null {
  try {
    // The functions saveShortLivedRunner and lockRunner write these files in this shape.
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch (error) {
    if (error instanceof SyntaxError || isMissing(error)) return null;
    throw error;
  }
}

function listNames(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
