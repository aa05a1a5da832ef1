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
import { isEarlierState, type Moving, readMoving } from "./earlier-state.ts";
import { HostError } from "../model/errors.ts";
import * as layout from "../model/state-layout.ts";
import { readHead, replaceHeadCopy } from "../record/audit/head.ts";
import { ownerIsAlive } from "../record/audit/owner.ts";
import { lockCoordinator, type CoordinatorLock } from "../record/coordinator-lock.ts";
import { type Connection, connect } from "../record/sqlite/connection.ts";
import { hostFault, isBusy } from "../record/sqlite/faults.ts";
import { sync } from "../record/sync.ts";

export interface MoveOptions {
  /** A state directory, of this or of an earlier version's layout. */
  from: string;
  /** Where it is to be, in two halves; may be the same. */
  to: string;
  /** Where the head of a record is kept a second time; null: nowhere. */
  headCopyOf: (record: string) => string | null;
}

interface Entry {
  name: string;
  source: string;
  target: string;
}

/**
 * All of it or nothing. On one file system everything is renamed, the database last; else it is copied, and what was
 * copied is removed only when all of it is in place. Killed at any moment it can be done again: until it is done
 * `moving.json` in the new place keeps every other command away.
 */
export function moveState(options: MoveOptions): void {
  const { from, to } = options;
  const moving = begun(options);
  const entries = entriesOf(from, to);
  if (moving && isDone(moving, entries)) return cleanUp(options, moving);
  refuseStrange(options, entries);
  refuseOccupied(options, entries, moving);
  const locks: CoordinatorLock[] = [];
  let database: Connection | null = null;
  let copies = false;
  try {
    for (const record of recordsOf(from)) {
      locks.push(lockOrFail(from, record));
      refuseLiveRunners(record);
    }
    if (from !== to) locks.push(lockOrFail(to, layout.recordDirectory(to)));
    database = holdDatabase(entries);
    copies = statSync(from).dev !== statSync(to).dev;
    note(to, { from, done: false, copies });
    if (copies) copyAll(entries, to);
    else renameAll(entries, to);
    note(to, { from, done: true, copies });
  } finally {
    database?.close();
    // where it was not moved after all
    if (database && existsSync(database.file)) turnToWal(database.file);
    for (const lock of locks) lock.release();
  }
  cleanUp(options, { copies });
}

/** Where its record may lie: an interrupted move leaves some of it in each. */
function recordsOf(stateDirectory: string): string[] {
  const record = layout.recordDirectory(stateDirectory);
  return [...(isEarlierState(stateDirectory) ? [stateDirectory] : []), ...(existsSync(record) ? [record] : [])];
}

/** The last entry is in its place: from then on others may have written there. */
function isDone({ done, copies }: Moving, entries: readonly Entry[]): boolean {
  const last = entries.at(-1);
  return done || (copies && last !== undefined && isThere(last.target));
}

function entriesOf(from: string, to: string): Entry[] {
  const half = (names: readonly string[], below: (state: string) => string): Entry[] =>
    names.flatMap((name) => {
      const target = join(below(to), name);
      const source = [join(from, name), join(below(from), name)].find((path) => path !== target && isThere(path));
      return source === undefined ? [] : [{ name, source, target }];
    });
  // the record last, and of it the database
  return [...half(layout.runsNames, layout.runsDirectory), ...half(layout.recordNames, layout.recordDirectory)];
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // a file has the name of the folder that it would be in
    if (error instanceof Error && Reflect.get(error, "code") === "ENOTDIR") return false;
    throw error;
  }
}

function begun({ from, to }: MoveOptions): Moving | null {
  const moving = readMoving(to);
  if (moving && moving.from !== from)
    throw cannot(
      to,
      `The move of ${moving.from} to ${to} was interrupted.`,
      `Finish that one first: --from ${moving.from}`,
    );
  return moving;
}

/** A link would lead to what is not the state's own. */
function refuseStrange({ from }: MoveOptions, entries: readonly Entry[]): void {
  if (statSync(from).uid !== process.getuid?.())
    throw cannot(from, `${from} belongs to another user.`, "Only what is yours can be moved.");
  for (const { source } of entries) {
    const found = lstatSync(source);
    if (!found.isFile() && !found.isDirectory())
      throw cannot(
        source,
        `${source} is neither a file nor a folder.`,
        "Put the real thing in its place, then try again.",
      );
  }
}

/** Of a move that was interrupted while it copied, what is there twice is the same. */
function refuseOccupied({ from, to }: MoveOptions, entries: readonly Entry[], moving: Moving | null): void {
  if (entries.length === 0 && !moving)
    throw cannot(from, `There is no state of Drover in ${from}.`, "Name another with --from.");
  const taken = moving?.copies ? [] : entries.filter(({ target }) => isThere(target));
  if (taken.length > 0 || (!moving && existsSync(layout.databaseFile(layout.recordDirectory(to)))))
    throw cannot(
      to,
      `There is a state in ${to} already${taken[0] ? ` (${taken[0].target})` : ""}.`,
      "Move that one aside first, or name another place with DROVER_STATE_DIR.",
    );
}

function lockOrFail(state: string, record: string): CoordinatorLock {
  const lock = lockCoordinator(record);
  if (lock === null) throw cannot(state, `A coordinator serves ${state}.`, "Stop it, then move the state.");
  return lock;
}

function refuseLiveRunners(record: string): void {
  const folder = layout.runnersDirectory(record);
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const lock = join(folder, name, "lock");
    if (!existsSync(lock)) continue;
    // written whole, by a runner
    const owner = JSON.parse(readFileSync(lock, "utf8")) as Parameters<typeof ownerIsAlive>[0];
    if (ownerIsAlive(owner))
      throw cannot(record, `The runner ${name} runs as process ${owner.pid}.`, "Stop it, then move the state.");
  }
}

/** In one file, without a WAL beside it, which SQLite grants only where nobody else has it open; and kept that way. */
function holdDatabase(entries: readonly Entry[]): Connection | null {
  const { source } = entries.find(({ name }) => name === "drover.db") ?? {};
  if (source === undefined) return null;
  try {
    const database = connect(source, "write");
    try {
      database.exec("pragma journal_mode = delete");
      database.exec("begin exclusive");
      return database;
    } catch (fault) {
      database.close();
      throw fault;
    }
  } catch (fault) {
    if (!isBusy(fault)) throw hostFault(fault, source);
    throw cannot(
      source,
      `The record ${source} is in use.`,
      "Wait for the commands that write to it, then try again.",
      fault,
    );
  }
}

function renameAll(entries: readonly Entry[], to: string): void {
  const done: Entry[] = [];
  try {
    for (const entry of entries) {
      mkdirSync(dirname(entry.target), { recursive: true, mode: 0o700 });
      renameSync(entry.source, entry.target);
      done.push(entry);
    }
    for (const { target } of done.slice(-1)) sync(dirname(target));
  } catch (fault) {
    for (const { source, target } of done.toReversed()) renameSync(target, source);
    rmSync(layout.movingFile(to));
    throw cannotWrite(to, fault);
  }
}

function copyAll(entries: readonly Entry[], to: string): void {
  const aside = `${layout.movingFile(to)}.copy`;
  try {
    rmSync(aside, { recursive: true, force: true });
    mkdirSync(aside, { mode: 0o700 });
    for (const { name, source } of entries) copyTree(source, join(aside, name));
    for (const { name, target } of entries) {
      mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
      rmSync(target, { recursive: true, force: true });
      renameSync(join(aside, name), target);
    }
    rmSync(aside, { recursive: true });
  } catch (fault) {
    for (const { target } of entries) rmSync(target, { recursive: true, force: true });
    rmSync(aside, { recursive: true, force: true });
    rmSync(layout.movingFile(to));
    throw cannotWrite(to, fault);
  }
}

function copyTree(source: string, target: string): void {
  cpSync(source, target, {
    recursive: true,
    preserveTimestamps: true,
    verbatimSymlinks: true,
    // a pipe or a socket that a run left cannot be copied, and is nothing without its other end
    filter: (path) => {
      const found = lstatSync(path);
      return found.isFile() || found.isDirectory() || found.isSymbolicLink();
    },
  });
  if (statSync(target).isFile()) sync(target);
}

/** Takes away what is left of the old place, and opens the new one. */
function cleanUp({ from, to, headCopyOf }: MoveOptions, { copies }: Pick<Moving, "copies">): void {
  const record = layout.recordDirectory(to);
  if (existsSync(layout.databaseFile(record))) turnToWal(layout.databaseFile(record));
  // the database first: without it nobody takes the rest for a state
  if (copies)
    for (const { source } of entriesOf(from, to).toReversed()) rmSync(source, { recursive: true, force: true });
  for (const folder of [from, layout.recordDirectory(from)].filter((each) => each !== record)) {
    rmSync(layout.announcementFile(folder), { force: true });
    for (const end of ["", "-journal"]) rmSync(layout.coordinatorLockFile(folder) + end, { force: true });
  }
  if (from !== to) {
    const old = headCopyOf(layout.recordDirectory(from));
    if (old) rmSync(old, { force: true });
    rmSync(layout.cacheDirectory(from), { recursive: true, force: true });
    if (basename(from) === ".drover") rmSync(join(from, ".gitignore"), { force: true });
    for (const folder of [layout.recordDirectory(from), layout.runsDirectory(from), from]) removeEmpty(folder);
  }
  const head = readHead(layout.auditHeadFile(record));
  const copy = headCopyOf(record);
  if (head && copy) replaceHeadCopy(copy, head);
  rmSync(layout.movingFile(to), { force: true });
}

function turnToWal(file: string): void {
  const database = connect(file, "write");
  try {
    database.exec("pragma journal_mode = wal");
  } finally {
    database.close();
  }
}

function removeEmpty(folder: string): void {
  if (existsSync(folder) && readdirSync(folder).length === 0) rmdirSync(folder);
}

function note(to: string, moving: Moving): void {
  const file = layout.movingFile(to);
  writeFileSync(`${file}.new`, JSON.stringify(moving), { mode: 0o600 });
  sync(`${file}.new`);
  renameSync(`${file}.new`, file);
}

function cannotWrite(to: string, cause: unknown): HostError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return cannot(
    to,
    `The state could not be moved to ${to}: ${why}. Everything is as it was.`,
    "Put that right, then try again.",
    cause,
  );
}

function cannot(field: string, message: string, next: string, cause?: unknown): HostError {
  return new HostError({ code: "DROVER-STA-014", field, message, next, cause });
}
