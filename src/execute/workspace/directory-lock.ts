import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join, sep } from "node:path";
import type { ExecutionStart } from "../../model/execution.ts";
import type { NewId } from "../../model/ids.ts";
import { sleep } from "../backoff.ts";

type Owner = ExecutionStart["owner"];

export interface LockPlace {
  /** Shared by all runners that shall not get into each other's way. */
  folder: string;
  owner: Owner;
  isAlive: (owner: Owner) => boolean;
  /** Grows with time. */
  newId: NewId;
}

interface Claimed {
  directory: string;
  run_id: string;
  owner: Owner;
}

export interface DirectoryLock {
  release(): Promise<void>;
}

const pauseMs = 100;

/**
 * One run at a time in a directory, or above or below it. Each that wants it puts up a file saying so, and only then
 * looks at the others': of two at once at least one sees the other. The older stays and waits for its turn, the
 * younger takes its file down and tries again; who sees nobody has it. null: the wait was ended.
 */
export async function lockDirectory(
  directory: string,
  run_id: string,
  place: LockPlace,
  signal: AbortSignal,
  onWaiting: (holder: { directory: string; run_id: string }) => void,
): Promise<DirectoryLock | null> {
  await mkdir(place.folder, { recursive: true, mode: 0o700 });
  const name = `${place.newId()}.json`;
  const path = join(place.folder, name);
  const text = JSON.stringify({ directory, run_id, owner: place.owner } satisfies Claimed);
  let told = false;
  let isUp = false;
  for (;;) {
    if (!isUp) await putUp(path, text);
    isUp = true;
    const others = await claimsAgainst(directory, name, place);
    if (signal.aborted) break;
    if (others.length === 0) return { release: () => rm(path, { force: true }) };
    if (!told) onWaiting(others[0]!.claimed);
    told = true;
    if (others.some((other) => other.name < name)) {
      await rm(path, { force: true });
      isUp = false;
    }
    await sleep(pauseMs, signal);
    if (signal.aborted) break;
  }
  await rm(path, { force: true });
  return null;
}

/** Never seen half-written. */
async function putUp(path: string, text: string): Promise<void> {
  const aside = `${path}.aside`;
  await writeFile(aside, text, { mode: 0o600 });
  await rename(aside, path);
}

async function claimsAgainst(
  directory: string,
  own: string,
  place: LockPlace,
): Promise<{ name: string; claimed: Claimed }[]> {
  const against: { name: string; claimed: Claimed }[] = [];
  for (const name of (await readdir(place.folder)).sort()) {
    if (name === own || !name.endsWith(".json")) continue;
    const path = join(place.folder, name);
    const claimed = await readClaim(path);
    if (claimed === null || !overlap(claimed.directory, directory)) continue;
    if (place.isAlive(claimed.owner)) against.push({ name, claimed });
    else await rm(path, { force: true });
  }
  return against;
}

/** null: taken down since it was listed. */
async function readClaim(path: string): Promise<Claimed | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as Claimed; // put up whole, by this code
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

function overlap(one: string, other: string): boolean {
  return isWithin(one, other) || isWithin(other, one);
}

export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
