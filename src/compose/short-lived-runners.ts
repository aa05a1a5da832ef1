import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { recordDirectory, runnersDirectory } from "../model/state-layout.ts";
import type { LoadedProfile } from "../define/profiles.ts";
import { ownerIsAlive } from "../record/audit/owner.ts";

/** A runner that lives as long as one command. This is in its directory, and is what it takes to be it again. */
export interface ShortLived {
  name: string;
  projectDir: string;
  loaded: LoadedProfile;
}

const noteName = "short-lived.json";

/** Written before it registers, so that any process that finds its directory can end what it began. */
export function noteShortLived(directory: string, note: ShortLived): void {
  const file = join(directory, noteName);
  writeFileSync(`${file}.new`, JSON.stringify(note), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** The short-lived runners of this state directory whose processes were killed. */
export function deadShortLived(stateDirectory: string): ShortLived[] {
  const folder = runnersDirectory(recordDirectory(stateDirectory));
  return names(folder).flatMap((name) => {
    const directory = join(folder, name);
    const note = readJson<ShortLived>(join(directory, noteName));
    const owner = note && readJson<Parameters<typeof ownerIsAlive>[0]>(join(directory, "lock"));
    return note && owner && !ownerIsAlive(owner) ? [note] : [];
  });
}

/** null where it is gone, or a crash of the machine cut it short. */
function readJson<T>(file: string): T | null {
  try {
    // Written by noteShortLived and lockRunner.
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch (error) {
    if (error instanceof SyntaxError || isMissing(error)) return null;
    throw error;
  }
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
