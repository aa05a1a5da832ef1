import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import type { NewId } from "../../model/ids.ts";
import { sleep } from "../port/backoff.ts";
import type { DirectoryClaim } from "./directory-claim.ts";
import { createClaimFile, temporarySuffix } from "./claim-file.ts";

type Owner = DirectoryClaim["owner"];

export interface LockOptions {
  /** The directory of the claim files. All runners that lock against each other share it. */
  claimsDirectory: string;
  owner: Owner;
  isAlive: (owner: Owner) => boolean;
  /** Ids must sort by time: the older claim wins. */
  newId: NewId;
  /** A claim whose owner cannot be checked is dead if it was not refreshed for this long. One minute by default. */
  staleMs?: number;
}

export interface DirectoryLock {
  release(): Promise<void>;
}

const pauseMs = 100;
const defaultStaleMs = 60_000;

/**
 * Locks a directory for one run, together with everything above and below it. Returns null if the signal is aborted.
 *
 * Each run first creates its claim file and then reads the others, so of two concurrent runs at least one sees the
 * other. The run with the older claim keeps it and waits; the younger removes its claim and retries. A run that sees no
 * other claim has the lock.
 */
export async function lockDirectory(
  directory: string,
  run_id: string,
  options: LockOptions,
  signal: AbortSignal,
  onWaiting: (holder: { directory: string; run_id: string }) => void,
): Promise<DirectoryLock | null> {
  await mkdir(options.claimsDirectory, { recursive: true, mode: 0o700 });
  const name = `${options.newId()}.json`;
  const text = JSON.stringify({ directory, run_id, owner: options.owner } satisfies DirectoryClaim);
  const file = createClaimFile(join(options.claimsDirectory, name), text, (options.staleMs ?? defaultStaleMs) / 6);
  try {
    if (await waitForTurn()) return { release: file.remove };
  } catch (error) {
    await file.remove();
    throw error;
  }
  await file.remove();
  return null;

  async function waitForTurn(): Promise<boolean> {
    let isReported = false;
    let hasClaim = false;
    while (!signal.aborted) {
      if (!hasClaim) await file.create();
      hasClaim = true;
      const conflicts = await findConflicts(directory, name, options);
      if (signal.aborted) break;
      if (conflicts.length === 0) return true;
      const holder = conflicts.find(({ claim }) => claim !== null)?.claim;
      if (!isReported && holder) {
        onWaiting(holder);
        isReported = true;
      }
      if (conflicts.some((conflict) => conflict.name < name)) {
        await file.remove();
        hasClaim = false;
      }
      await sleep(pauseMs, signal);
    }
    return false;
  }
}

/** Also removes dead claims. An unreadable claim is returned as null, and assumed to cover this directory. */
async function findConflicts(
  directory: string,
  ownName: string,
  options: LockOptions,
): Promise<{ name: string; claim: DirectoryClaim | null }[]> {
  const conflicts: { name: string; claim: DirectoryClaim | null }[] = [];
  for (const name of (await readdir(options.claimsDirectory)).sort()) {
    const isTemporary = name.endsWith(temporarySuffix);
    if (name === ownName || !(isTemporary || name.endsWith(".json"))) continue;
    const path = join(options.claimsDirectory, name);
    const entry = await readClaim(path);
    if (entry === null || (entry.claim && !isTemporary && !overlaps(entry.claim.directory, directory))) continue;
    if (!isAlive(isTemporary ? null : entry.claim, entry.ageMs, options)) await rm(path, { force: true });
    else if (!isTemporary) conflicts.push({ name, claim: entry.claim });
  }
  return conflicts;
}

/** Checks the owner's process if it is on this host, else the age of the file, which a live owner refreshes. */
function isAlive(
  claim: DirectoryClaim | null,
  ageMs: number,
  { owner, isAlive: isOwnerAlive, staleMs = defaultStaleMs }: LockOptions,
) {
  if (claim !== null && claim.owner.host === owner.host) return isOwnerAlive(claim.owner);
  return ageMs <= staleMs && (claim === null || isOwnerAlive(claim.owner));
}

/** Returns null if the file was removed since it was listed. The claim is null if a system crash left it empty or damaged. */
async function readClaim(path: string): Promise<{ claim: DirectoryClaim | null; ageMs: number } | null> {
  try {
    const ageMs = Date.now() - (await stat(path)).mtimeMs;
    return { claim: await parseClaim(await readFile(path, "utf8")), ageMs };
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

/** Loads the schema only if there is another claim to read. */
async function parseClaim(text: string): Promise<DirectoryClaim | null> {
  const { directoryClaimSchema } = await import("./directory-claim.ts");
  try {
    return directoryClaimSchema.safeParse(JSON.parse(text)).data ?? null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function overlaps(first: string, second: string): boolean {
  return isWithin(first, second) || isWithin(second, first);
}

export function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep);
}
