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

/** Ensures that only one process acts as a given runner. Takes over the lock of a dead process. */
export function lockRunner(directory: string, owner: Owner, isAlive: (owner: Owner) => boolean): RunnerLock {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, "lock");
  const own = `${JSON.stringify(owner)}\n`;
  // written to a temporary file and linked, so that nobody reads a half-written lock
  const aside = join(directory, `lock.${randomUUID()}`);
  writeFileSync(aside, own, { mode: 0o600 });
  try {
    for (let tries = 0; tries < 10; tries++) {
      if (tryLink(aside, path)) return { release: () => releaseLock(path, own) };
      const holder = readOrNull(path);
      if (holder === null) continue;
      const holding = ownerIn(holder);
      if (holding && isAlive(holding)) throw alreadyRunning(holding);
      removeStale(path, holder);
    }
  } finally {
    rmSync(aside, { force: true });
  }
  throw new HostError({
    code: "DROVER-STA-001",
    message: `The lock ${path} could not be acquired.`,
    next: "Try again. If no runner uses this directory, remove the file.",
  });
}

/** The runner's secret identity, generated at its first start. */
export function runnerKey(directory: string): string {
  return readOrCreate(join(directory, "key"), () => randomBytes(32).toString("hex"));
}

/** The id of a state directory, generated at first use. All its runners share the sessions in it. */
export function placeId(record: string): string {
  return readOrCreate(placeIdFile(record), () => randomUUID());
}

function readOrCreate(path: string, make: () => string): string {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const known = readOrNull(path)?.trim();
  if (known) return known;
  const aside = `${path}.${randomUUID()}`;
  writeFileSync(aside, `${make()}\n`, { mode: 0o600 });
  try {
    tryLink(aside, path);
  } finally {
    rmSync(aside, { force: true });
  }
  return readFileSync(path, "utf8").trim();
}

/** False if `to` already exists. */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (isCode(error, "EEXIST")) return false;
    throw error;
  }
}

/** null if the lock is damaged or not ours; then nobody holds it. */
function ownerIn(text: string): Owner | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && typeof Reflect.get(value, "pid") === "number"
      ? (value as Owner)
      : null; // a lock with a pid was written by lockRunner
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Removes a dead process's lock. Renames it first, which only one process can do, and puts it back if it has changed. */
function removeStale(path: string, holder: string): void {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (isCode(error, "ENOENT")) return;
    throw error;
  }
  // another process took the lock in between: give it back
  if (readOrNull(aside) !== holder) tryLink(aside, path);
  rmSync(aside, { force: true });
}

function releaseLock(path: string, own: string): void {
  if (readOrNull(path) === own) rmSync(path, { force: true });
}

function alreadyRunning({ pid, host }: Owner): HostError {
  return new HostError({
    code: "DROVER-STA-001",
    message: `This runner is already running as process ${pid} on ${host}.`,
    next: "Stop that process, or give this runner another name with --name.",
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
