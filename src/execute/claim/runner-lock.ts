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
  const lockText = `${JSON.stringify(owner)}\n`;
  // Written to a temporary file and linked, so that no process reads a half-written lock.
  const temporary = join(directory, `lock.${randomUUID()}`);
  writeFileSync(temporary, lockText, { mode: 0o600 });
  try {
    for (let tries = 0; tries < 10; tries++) {
      if (tryLink(temporary, path)) return { release: () => releaseLock(path, lockText) };
      const currentText = readOrNull(path);
      if (currentText === null) continue;
      const holder = parseOwner(currentText);
      if (holder && isAlive(holder)) throw alreadyRunning(holder);
      removeStaleLock(path, currentText);
    }
  } finally {
    rmSync(temporary, { force: true });
  }
  throw new HostError({
    code: "DROVER-STA-001",
    message: `The lock ${path} could not be acquired.`,
    next: "Try again. If no runner uses this directory, remove the file.",
  });
}

/** Returns the runner's secret identity, which is generated at its first start. */
export function readRunnerKey(directory: string): string {
  return readOrCreate(join(directory, "key"), () => randomBytes(32).toString("hex"));
}

/** Returns the id of a state directory, which is generated at first use. All its runners share the sessions in it. */
export function readPlaceId(record: string): string {
  return readOrCreate(placeIdFile(record), () => randomUUID());
}

function readOrCreate(path: string, create: () => string): string {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const existing = readOrNull(path)?.trim();
  if (existing) return existing;
  const temporary = `${path}.${randomUUID()}`;
  writeFileSync(temporary, `${create()}\n`, { mode: 0o600 });
  try {
    tryLink(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
  return readFileSync(path, "utf8").trim();
}

/** Returns false if `to` already exists. */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (hasErrorCode(error, "EEXIST")) return false;
    throw error;
  }
}

/** Returns null if the lock is damaged or was not written by Drover. Such a lock has no owner. */
function parseOwner(text: string): Owner | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && typeof Reflect.get(value, "pid") === "number"
      ? (value as Owner)
      : null; // lockRunner() wrote a lock with a pid.
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/**
 * Removes a dead process's lock. Renames it first, which only one process can do, and restores it if it has changed.
 */
function removeStaleLock(path: string, currentText: string): void {
  const temporary = `${path}.${randomUUID()}`;
  try {
    renameSync(path, temporary);
  } catch (error) {
    if (hasErrorCode(error, "ENOENT")) return;
    throw error;
  }
  // Another process took the lock in between: restore its lock.
  if (readOrNull(temporary) !== currentText) tryLink(temporary, path);
  rmSync(temporary, { force: true });
}

function releaseLock(path: string, lockText: string): void {
  if (readOrNull(path) === lockText) rmSync(path, { force: true });
}

function alreadyRunning({ pid, host }: Owner): HostError {
  return new HostError({
    code: "DROVER-STA-001",
    message: `This runner is already running as process ${pid} on ${host}.`,
    next: "Stop that process, or pass another runner name with --name.",
  });
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (hasErrorCode(error, "ENOENT")) return null;
    throw error;
  }
}

function hasErrorCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
