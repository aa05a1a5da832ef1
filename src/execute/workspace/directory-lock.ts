import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import type { NewId } from "../../model/ids.ts";
import { sleep } from "../port/backoff.ts";
import type { DirectoryClaim } from "./directory-claim.ts";
import { asideSuffix, createClaimFile } from "./claim-file.ts";

type Owner = DirectoryClaim["owner"];

export interface LockOptions {
  /** Shared by all runners that shall not get into each other's way. */
  folder: string;
  owner: Owner;
  isAlive: (owner: Owner) => boolean;
  /** Grows with time. */
  newId: NewId;
  /** A claim that nobody has freshened for so long is dead, where its owner cannot be asked for; a minute unless given. */
  staleMs?: number;
}

export interface DirectoryLock {
  release(): Promise<void>;
}

const pauseMs = 100;
const minute = 60_000;

/**
 * One run at a time in a directory, or above or below it. Each that wants it puts up a file saying so, and only then
 * looks at the others': of two at once at least one sees the other. The older stays and waits for its turn, the
 * younger takes its file down and tries again; who sees nobody has it. null: the wait was ended.
 */
export async function lockDirectory(
  directory: string,
  run_id: string,
  place: LockOptions,
  signal: AbortSignal,
  onWaiting: (holder: { directory: string; run_id: string }) => void,
): Promise<DirectoryLock | null> {
  await mkdir(place.folder, { recursive: true, mode: 0o700 });
  const name = `${place.newId()}.json`;
  const text = JSON.stringify({ directory, run_id, owner: place.owner } satisfies DirectoryClaim);
  const file = createClaimFile(join(place.folder, name), text, (place.staleMs ?? minute) / 6);
  try {
    if (await waitForTurn()) return { release: file.takeDown };
  } catch (error) {
    await file.takeDown();
    throw error;
  }
  await file.takeDown();
  return null;

  async function waitForTurn(): Promise<boolean> {
    let told = false;
    let isUp = false;
    while (!signal.aborted) {
      if (!isUp) await file.putUp();
      isUp = true;
      const others = await claimsAgainst(directory, name, place);
      if (signal.aborted) break;
      if (others.length === 0) return true;
      const holder = others.find(({ claimed }) => claimed !== null)?.claimed;
      if (!told && holder) {
        onWaiting(holder);
        told = true;
      }
      if (others.some((other) => other.name < name)) {
        await file.takeDown();
        isUp = false;
      }
      await sleep(pauseMs, signal);
    }
    return false;
  }
}

/** Of whom nobody knows what it claims, it may be this; null stands for that. */
async function claimsAgainst(
  directory: string,
  own: string,
  place: LockOptions,
): Promise<{ name: string; claimed: DirectoryClaim | null }[]> {
  const against: { name: string; claimed: DirectoryClaim | null }[] = [];
  for (const name of (await readdir(place.folder)).sort()) {
    const isAside = name.endsWith(asideSuffix);
    if (name === own || !(isAside || name.endsWith(".json"))) continue;
    const path = join(place.folder, name);
    const found = await readClaim(path);
    if (found === null || (found.claimed && !isAside && !overlap(found.claimed.directory, directory))) continue;
    if (!isAlive(isAside ? null : found.claimed, found.ageMs, place)) await rm(path, { force: true });
    else if (!isAside) against.push({ name, claimed: found.claimed });
  }
  return against;
}

/** Whoever lives freshens its file; where there is no owner that could be looked for, that has to do. */
function isAlive(
  claimed: DirectoryClaim | null,
  ageMs: number,
  { owner, isAlive: lives, staleMs = minute }: LockOptions,
) {
  if (claimed !== null && claimed.owner.host === owner.host) return lives(claimed.owner);
  return ageMs <= staleMs && (claimed === null || lives(claimed.owner));
}

/** null: taken down since it was listed. Without a claim: a crash of the machine can leave an empty file. */
async function readClaim(path: string): Promise<{ claimed: DirectoryClaim | null; ageMs: number } | null> {
  try {
    const ageMs = Date.now() - (await stat(path)).mtimeMs;
    return { claimed: await parseClaim(await readFile(path, "utf8")), ageMs };
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

/** Loads the schema only where there is another claim to read. */
async function parseClaim(text: string): Promise<DirectoryClaim | null> {
  const { directoryClaimSchema } = await import("./directory-claim.ts");
  try {
    return directoryClaimSchema.safeParse(JSON.parse(text)).data ?? null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function overlap(one: string, other: string): boolean {
  return isWithin(one, other) || isWithin(other, one);
}

export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
