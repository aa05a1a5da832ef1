import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Outcome } from "../../model/executor.ts";
import { type Journal, openJournal, shippedLine } from "./journal.ts";
import { type LogFile, openLogFile } from "./log-file.ts";

/** The logs of one registration, `<run_id>.<attempt>.jsonl`. The first line of each names its runner. */
export interface RunLogsOptions {
  directory: string;
  /** Distinguishes this registration's logs from those of others in the same directory. */
  runner: string;
  now: () => Date;
  memoryBytes: number;
  maxBytes: number;
}

/** If `keepsFile` is set, the log stays on disk after it was shipped. */
export function createRunLog(run_id: string, attempt: number, keepsFile: boolean, options: RunLogsOptions): Journal {
  const { now, memoryBytes, maxBytes } = options;
  return openJournal({
    run_id,
    attempt,
    now,
    memoryBytes,
    maxBytes,
    open() {
      const file = openLogFile(join(options.directory, toLogName(run_id, attempt)), { create: true });
      const { runner } = options;
      const opened_at = now().toISOString();
      file.append(JSON.stringify({ run_id, attempt, runner, opened_at, ...(keepsFile ? { stays: true } : {}) }));
      return file;
    },
    keepsFile,
  });
}

/** An unshipped log of a runner that died. */
export interface FoundLog {
  journal: Journal;
  /** By execution id. */
  executions: ReadonlyMap<string, "open" | "ended">;
}

/** Finds this registration's unshipped logs. */
export function findRunLogs(options: RunLogsOptions): FoundLog[] {
  return listLogFiles(options.directory).flatMap(({ name, run_id, attempt }) => {
    if (isShipped(join(options.directory, name))) return [];
    const log = readLog(join(options.directory, name), run_id, attempt, options);
    return log ? [log] : [];
  });
}

function toLogName(run_id: string, attempt: number): string {
  return `${run_id}.${attempt}.jsonl`;
}

function listLogFiles(directory: string): { name: string; run_id: string; attempt: number }[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
  return names.flatMap((name) => parseLogName(name) ?? []);
}

export function parseLogName(name: string): { name: string; run_id: string; attempt: number } | null {
  const parts = /^(.+)\.(\d+)\.jsonl$/.exec(name);
  return parts && { name, run_id: parts[1]!, attempt: Number(parts[2]) };
}

/** Reads only the last line. */
export function isShipped(path: string): boolean {
  const file = openOrNull(path);
  if (file === null) return false;
  const { lines } = file.read(Math.max(0, file.size - shippedLine.length * 4), shippedLine.length * 4);
  file.close();
  return lines.at(-1) === shippedLine;
}

interface LogLine {
  runner?: string;
  stays?: true;
  n?: number;
  /** Must not be reported unless a `saved` line follows. */
  held?: true;
  saved?: number;
  event?: { type?: string; execution?: { execution_id?: string } };
  outcome?: Outcome;
}

/**
 * Returns null if the log belongs to another registration. An empty file may be one that another runner in the same
 * directory is just creating, so it is not touched. Removes a last line that a crash truncated.
 */
function readLog(path: string, run_id: string, attempt: number, options: RunLogsOptions): FoundLog | null {
  const file = openOrNull(path);
  if (file === null) return null;
  let lastN = 0;
  let outcome: Outcome | null = null;
  let runner: string | undefined;
  let keepsFile = false;
  let validBytes = 0;
  let heldFrom: { bytes: number; lastN: number } | null = null;
  const executions = new Map<string, "open" | "ended">();
  for (let offset = 0; ;) {
    const { lines, end } = file.read(offset, 1024 * 1024);
    if (lines.length === 0) break;
    for (const text of lines) {
      const line = parseLine(text);
      if (line === null) break;
      if (line.held && line.event?.execution === undefined) heldFrom ??= { bytes: validBytes, lastN };
      // A process has started or ended since, which must stay on record.
      if (line.saved !== undefined || line.event?.execution !== undefined) heldFrom = null;
      validBytes += Buffer.byteLength(text) + 1;
      runner ??= line.runner;
      keepsFile ||= line.stays === true;
      if (line.n !== undefined) lastN = line.n;
      if (line.outcome) outcome = line.outcome;
      const id = line.event?.execution?.execution_id;
      if (id !== undefined && line.event?.type === "execution_started") executions.set(id, "open");
      if (id !== undefined && line.event?.type === "execution_ended") executions.set(id, "ended");
    }
    offset = end;
    if (validBytes < end) break;
  }
  if (runner !== options.runner) {
    file.close();
    return null;
  }
  // Events of a session state that was not saved will happen again: drop them.
  if (heldFrom !== null && outcome === null) [validBytes, lastN] = [heldFrom.bytes, heldFrom.lastN];
  // An event is written before anything acts on it, so an incomplete line had no effect.
  file.truncate(validBytes);
  const { now, memoryBytes, maxBytes } = options;
  return {
    journal: openJournal({
      run_id,
      attempt,
      now,
      memoryBytes,
      maxBytes,
      open: () => file,
      keepsFile,
      recovered: { lastN, outcome },
    }),
    executions,
  };
}

/** Returns null if another runner has shipped and removed the log since the directory was listed. */
function openOrNull(path: string): LogFile | null {
  try {
    return openLogFile(path, { create: false });
  } catch (error) {
    const cause = error instanceof Error ? error.cause : null;
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return null;
    throw error;
  }
}

function parseLine(text: string): LogLine | null {
  try {
    const line: unknown = JSON.parse(text);
    return typeof line === "object" && line !== null ? line : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
