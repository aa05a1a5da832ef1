import { randomBytes, randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { HostError } from "../../model/errors.ts";
import type { ExecutionStart } from "../../model/execution.ts";
import { placeIdFile } from "../../model/state-layout.ts";

export interface RunnerLock {
  release(): void;
}

type Owner = ExecutionStart["owner"];

/** Only one process at a time may be a given runner. What a dead one left is taken over. */
export function lockRunner(directory: string, owner: Owner, isAlive: (owner: Owner) => boolean): RunnerLock {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, "lock");
  const own = `${JSON.stringify(owner)}\n`;
  // written aside and linked: a lock is never seen half-written
  const aside = join(directory, `lock.${randomUUID()}`);
  writeFileSync(aside, own, { mode: 0o600 });
  try {
    for (let tries = 0; tries < 10; tries++) {
      if (linkOnce(aside, path)) return { release: () => releaseLock(path, own) };
      const holder = readOrNull(path);
      if (holder === null) continue;
      const holding = ownerIn(holder);
      if (holding && isAlive(holding)) throw alreadyRunning(holding);
      takeAway(path, holder);
    }
  } finally {
    rmSync(aside, { force: true });
  }
  throw new HostError({
    code: "DROVER-STA-001",
    message: `The lock ${path} could not be taken.`,
    next: "Try again; remove the file if no runner uses it.",
  });
}

/** The runner's secret identity, made once. */
export function runnerKey(directory: string): string {
  return madeOnce(join(directory, "key"), () => randomBytes(32).toString("hex"));
}

/** The id of a state directory, made once: sessions lie in it, whichever runner made them. */
export function placeId(record: string): string {
  return madeOnce(placeIdFile(record), () => randomUUID());
}

function madeOnce(path: string, make: () => string): string {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const known = readOrNull(path)?.trim();
  if (known) return known;
  const aside = `${path}.${randomUUID()}`;
  writeFileSync(aside, `${make()}\n`, { mode: 0o600 });
  try {
    linkOnce(aside, path);
  } finally {
    rmSync(aside, { force: true });
  }
  return readFileSync(path, "utf8").trim();
}

function linkOnce(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (isCode(error, "EEXIST")) return false;
    throw error;
  }
}

/** null: not one of ours, or damaged; then nobody can be said to hold it. */
function ownerIn(text: string): Owner | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && typeof Reflect.get(value, "pid") === "number"
      ? (value as Owner)
      : null; // ours: its pid was just seen
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** By renaming, which one process alone can do, and only while it is still the dead one's. */
function takeAway(path: string, holder: string): void {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (isCode(error, "ENOENT")) return;
    throw error;
  }
  // somebody was quicker: it is theirs
  if (readOrNull(aside) !== holder) linkOnce(aside, path);
  rmSync(aside, { force: true });
}

function releaseLock(path: string, own: string): void {
  if (readOrNull(path) === own) rmSync(path, { force: true });
}

function alreadyRunning({ pid, host }: Owner): HostError {
  return new HostError({
    code: "DROVER-STA-001",
    message: `This runner is already running as process ${pid} on ${host}.`,
    next: "Stop that one, or give this one a name of its own with --name.",
  });
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (isCode(error, "ENOENT")) return null;
    throw error;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
