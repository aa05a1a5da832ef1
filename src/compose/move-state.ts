import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { isEarlierState, readMove, type StateMove } from "./earlier-state.ts";
import { quoteForShell } from "../cli/shell-quote.ts";
import { HostError } from "../model/errors.ts";
import * as layout from "../model/state-layout.ts";
import { readHead, replaceHeadCopy } from "../record/audit/head.ts";
import { isOwnerAlive } from "../record/audit/owner.ts";
import { lockCoordinator, type CoordinatorLock } from "../record/coordinator-lock.ts";
import { type Connection, connect } from "../record/sqlite/connection.ts";
import { toHostError, isBusy } from "../record/sqlite/errors.ts";
import { sync } from "../record/sync.ts";

export interface MoveOptions {
  /** A state directory, in the current layout or that of an earlier version. */
  from: string;
  /** The new state directory, always in the current layout. May be the same as `from`. */
  to: string;
  /** Returns the path of the second copy of a record's head, or null if there is none. */
  findHeadCopy: (record: string) => string | null;
}

interface Entry {
  name: string;
  source: string;
  target: string;
}

/**
 * Moves a state directory completely or not at all. On one file system all entries are renamed, the database last.
 * Otherwise they are copied, and the originals are removed once all copies are in place. A move that is killed can be
 * repeated. Until it is finished, `moving.json` in the new directory makes all other commands fail.
 */
export function moveState(options: MoveOptions): void {
  const { from, to } = options;
  const interrupted = findInterruptedMove(options);
  const entries = listEntries(from, to);
  if (interrupted && isDone(interrupted, entries)) return cleanUp(options, interrupted);
  rejectUnsupportedEntries(options, entries);
  rejectExistingState(options, entries, interrupted);
  const locks: CoordinatorLock[] = [];
  let database: Connection | null = null;
  let copies = false;
  try {
    for (const record of findRecords(from)) {
      locks.push(lockOrThrow(from, record));
      rejectLiveRunners(record);
    }
    if (from !== to) locks.push(lockOrThrow(to, layout.recordDirectory(to)));
    database = lockDatabase(entries);
    copies = statSync(from).dev !== statSync(to).dev;
    saveMove(to, { from, done: false, copies });
    if (copies) copyAll(entries, to);
    else renameAll(entries, to);
    saveMove(to, { from, done: true, copies });
  } finally {
    database?.close();
    // If the database was not moved, restore its journal mode.
    if (database && existsSync(database.file)) enableWal(database.file);
    for (const lock of locks) lock.release();
  }
  cleanUp(options, { copies });
}

/** Returns the directories that may contain the record. After an interrupted move both layouts contain part of it. */
function findRecords(stateDirectory: string): string[] {
  const record = layout.recordDirectory(stateDirectory);
  return [...(isEarlierState(stateDirectory) ? [stateDirectory] : []), ...(existsSync(record) ? [record] : [])];
}

/** Once the last entry is in place, the move must not be repeated, because other commands may have written to the new state. */
function isDone({ done, copies }: StateMove, entries: readonly Entry[]): boolean {
  const last = entries.at(-1);
  return done || (copies && last !== undefined && pathExists(last.target));
}

function listEntries(from: string, to: string): Entry[] {
  const listPart = (names: readonly string[], directoryIn: (state: string) => string): Entry[] =>
    names.flatMap((name) => {
      const target = join(directoryIn(to), name);
      const source = [join(from, name), join(directoryIn(from), name)].find(
        (path) => path !== target && pathExists(path),
      );
      return source === undefined ? [] : [{ name, source, target }];
    });
  // The record comes last, and its last entry is the database.
  return [...listPart(layout.runsNames, layout.runsDirectory), ...listPart(layout.recordNames, layout.recordDirectory)];
}

function pathExists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // ENOTDIR: a file has the name of the parent directory.
    if (error instanceof Error && Reflect.get(error, "code") === "ENOTDIR") return false;
    throw error;
  }
}

function findInterruptedMove({ from, to }: MoveOptions): StateMove | null {
  const move = readMove(to);
  if (move && move.from !== from)
    throw cannotMove(
      to,
      `The move of ${move.from} to ${to} was interrupted.`,
      `Finish that move first: drover state move --from ${quoteForShell(move.from)}`,
    );
  return move;
}

/** Rejects links, because they could point outside the state directory. */
function rejectUnsupportedEntries({ from }: MoveOptions, entries: readonly Entry[]): void {
  if (statSync(from).uid !== process.getuid?.())
    throw cannotMove(from, `${from} belongs to another user.`, "Run the command as that user.");
  for (const { source } of entries) {
    const stats = lstatSync(source);
    if (!stats.isFile() && !stats.isDirectory())
      throw cannotMove(
        source,
        `${source} is neither a file nor a directory.`,
        "Replace it with a regular file or directory, then try again.",
      );
  }
}

/** After an interrupted copy, an entry that exists in both directories is the same in both, so it is not rejected. */
function rejectExistingState(
  { from, to }: MoveOptions,
  entries: readonly Entry[],
  interrupted: StateMove | null,
): void {
  if (entries.length === 0 && !interrupted)
    throw cannotMove(from, `${from} contains no Drover state.`, "Pass another directory with --from.");
  const existing = interrupted?.copies ? [] : entries.filter(({ target }) => pathExists(target));
  if (existing.length > 0 || (!interrupted && existsSync(layout.databaseFile(layout.recordDirectory(to)))))
    throw cannotMove(
      to,
      `${to} already contains a state${existing[0] ? ` (${existing[0].target})` : ""}.`,
      "Move that state away first, or choose another directory with DROVER_STATE_DIR.",
    );
}

function lockOrThrow(state: string, record: string): CoordinatorLock {
  const lock = lockCoordinator(record);
  if (lock === null) throw cannotMove(state, `A coordinator is using ${state}.`, "Stop it, then move the state.");
  return lock;
}

function rejectLiveRunners(record: string): void {
  const runners = layout.runnersDirectory(record);
  for (const name of existsSync(runners) ? readdirSync(runners) : []) {
    const lock = join(runners, name, "lock");
    if (!existsSync(lock)) continue;
    // The runner writes it atomically.
    const owner = JSON.parse(readFileSync(lock, "utf8")) as Parameters<typeof isOwnerAlive>[0];
    if (isOwnerAlive(owner))
      throw cannotMove(
        record,
        `The runner ${name} is running as process ${owner.pid}.`,
        "Stop it, then move the state.",
      );
  }
}

/**
 * Merges the WAL into the database file and locks it, so that the file can be moved alone. SQLite allows this only if no
 * other process has the database open.
 */
function lockDatabase(entries: readonly Entry[]): Connection | null {
  const { source } = entries.find(({ name }) => name === "drover.db") ?? {};
  if (source === undefined) return null;
  try {
    const database = connect(source, "write");
    try {
      database.exec("pragma journal_mode = delete");
      database.exec("begin exclusive");
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    if (!isBusy(error)) throw toHostError(error, source);
    throw cannotMove(
      source,
      `The record ${source} is in use.`,
      "Wait until the commands that use it have finished, then try again.",
      error,
    );
  }
}

function renameAll(entries: readonly Entry[], to: string): void {
  const renamed: Entry[] = [];
  try {
    for (const entry of entries) {
      mkdirSync(dirname(entry.target), { recursive: true, mode: 0o700 });
      renameSync(entry.source, entry.target);
      renamed.push(entry);
    }
    for (const { target } of renamed.slice(-1)) sync(dirname(target));
  } catch (error) {
    for (const { source, target } of renamed.toReversed()) renameSync(target, source);
    rmSync(layout.movingFile(to));
    throw moveFailed(to, error);
  }
}

function copyAll(entries: readonly Entry[], to: string): void {
  const staging = `${layout.movingFile(to)}.copy`;
  try {
    rmSync(staging, { recursive: true, force: true });
    mkdirSync(staging, { mode: 0o700 });
    for (const { name, source } of entries) copyTree(source, join(staging, name));
    for (const { name, target } of entries) {
      mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
      rmSync(target, { recursive: true, force: true });
      renameSync(join(staging, name), target);
    }
    rmSync(staging, { recursive: true });
  } catch (error) {
    for (const { target } of entries) rmSync(target, { recursive: true, force: true });
    rmSync(staging, { recursive: true, force: true });
    rmSync(layout.movingFile(to));
    throw moveFailed(to, error);
  }
}

function copyTree(source: string, target: string): void {
  cpSync(source, target, {
    recursive: true,
    preserveTimestamps: true,
    verbatimSymlinks: true,
    // Skip pipes and sockets that runs left behind: they are useless without their other end.
    filter: (path) => {
      const stats = lstatSync(path);
      return stats.isFile() || stats.isDirectory() || stats.isSymbolicLink();
    },
  });
  if (statSync(target).isFile()) sync(target);
}

/** Removes the remains of the old state and makes the new one usable. */
function cleanUp({ from, to, findHeadCopy }: MoveOptions, { copies }: Pick<StateMove, "copies">): void {
  const record = layout.recordDirectory(to);
  if (existsSync(layout.databaseFile(record))) enableWal(layout.databaseFile(record));
  // Remove the database first: without it, the remaining entries do not count as a state.
  if (copies)
    for (const { source } of listEntries(from, to).toReversed()) rmSync(source, { recursive: true, force: true });
  for (const directory of [from, layout.recordDirectory(from)].filter((path) => path !== record)) {
    rmSync(layout.announcementFile(directory), { force: true });
    for (const suffix of ["", "-journal"]) rmSync(layout.coordinatorLockFile(directory) + suffix, { force: true });
  }
  if (from !== to) {
    const oldCopy = findHeadCopy(layout.recordDirectory(from));
    if (oldCopy) rmSync(oldCopy, { force: true });
    rmSync(layout.cacheDirectory(from), { recursive: true, force: true });
    if (basename(from) === ".drover") rmSync(join(from, ".gitignore"), { force: true });
    for (const directory of [layout.recordDirectory(from), layout.runsDirectory(from), from]) removeIfEmpty(directory);
  }
  const head = readHead(layout.auditHeadFile(record));
  const copy = findHeadCopy(record);
  if (head && copy) replaceHeadCopy(copy, head);
  rmSync(layout.movingFile(to), { force: true });
}

function enableWal(file: string): void {
  const database = connect(file, "write");
  try {
    database.exec("pragma journal_mode = wal");
  } finally {
    database.close();
  }
}

function removeIfEmpty(directory: string): void {
  if (existsSync(directory) && readdirSync(directory).length === 0) rmdirSync(directory);
}

function saveMove(to: string, move: StateMove): void {
  const file = layout.movingFile(to);
  writeFileSync(`${file}.new`, JSON.stringify(move), { mode: 0o600 });
  sync(`${file}.new`);
  renameSync(`${file}.new`, file);
}

function moveFailed(to: string, cause: unknown): HostError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return cannotMove(
    to,
    `The state could not be moved to ${to}: ${reason}. The old state is unchanged.`,
    "Fix the cause, then try again.",
    cause,
  );
}

function cannotMove(field: string, message: string, next: string, cause?: unknown): HostError {
  return new HostError({ code: "DROVER-STA-014", field, message, next, cause });
}
