import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Outcome } from "../model/executor.ts";
import { type Journal, openJournal } from "./journal.ts";
import { openLogFile } from "./log-file.ts";

/** The logs of one registration's attempts: `<run_id>.<attempt>.jsonl`, the first line of each says whose it is. */
export interface LogsOptions {
  directory: string;
  /** Tells this registration's logs from another's in the same folder. */
  runner: string;
  now: () => Date;
  memoryBytes: number;
  maxBytes: number;
}

export function createRunLog(run_id: string, attempt: number, options: LogsOptions): Journal {
  const { now, memoryBytes, maxBytes } = options;
  return openJournal({
    run_id,
    attempt,
    now,
    memoryBytes,
    maxBytes,
    open() {
      const file = openLogFile(join(options.directory, logName(run_id, attempt)), { create: true });
      file.append(JSON.stringify({ run_id, attempt, runner: options.runner, opened_at: now().toISOString() }));
      return file;
    },
  });
}

/** What a runner that died left unshipped. */
export interface FoundLog {
  journal: Journal;
  /** Executions that have no end. */
  open: string[];
}

export function findRunLogs(options: LogsOptions): FoundLog[] {
  return logFiles(options.directory).flatMap(({ name, run_id, attempt }) => {
    const found = readLog(join(options.directory, name), run_id, attempt, options);
    return found ? [found] : [];
  });
}

function logName(run_id: string, attempt: number): string {
  return `${run_id}.${attempt}.jsonl`;
}

function logFiles(directory: string): { name: string; run_id: string; attempt: number }[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
  return names.flatMap((name) => {
    const parts = /^(.+)\.(\d+)\.jsonl$/.exec(name);
    return parts ? [{ name, run_id: parts[1]!, attempt: Number(parts[2]) }] : [];
  });
}

interface AnyLine {
  runner?: string;
  n?: number;
  event?: { type?: string; execution?: { execution_id?: string } };
  outcome?: Outcome;
}

/** null: another's. A last line that was cut by a crash is cut off. */
function readLog(path: string, run_id: string, attempt: number, options: LogsOptions): FoundLog | null {
  const file = openLogFile(path, { create: false });
  let lastN = 0;
  let outcome: Outcome | null = null;
  let whose: string | undefined;
  let good = 0;
  const open = new Set<string>();
  for (let from = 0; ;) {
    const { lines, end } = file.read(from, 1024 * 1024);
    if (lines.length === 0) break;
    for (const text of lines) {
      const line = parseLine(text);
      if (line === null) break;
      good += Buffer.byteLength(text) + 1;
      whose ??= line.runner;
      if (line.n !== undefined) lastN = line.n;
      if (line.outcome) outcome = line.outcome;
      const id = line.event?.execution?.execution_id;
      if (id !== undefined && line.event?.type === "execution_started") open.add(id);
      if (id !== undefined && line.event?.type === "execution_ended") open.delete(id);
    }
    from = end;
    if (good < end) break;
  }
  if (whose !== undefined && whose !== options.runner) {
    file.close();
    return null;
  }
  // nothing was written after it, so nothing was done after it
  file.cutTo(good);
  const { now, memoryBytes, maxBytes } = options;
  return {
    journal: openJournal({ run_id, attempt, now, memoryBytes, maxBytes, open: () => file, found: { lastN, outcome } }),
    open: [...open],
  };
}

function parseLine(text: string): AnyLine | null {
  try {
    const line: unknown = JSON.parse(text);
    return typeof line === "object" && line !== null ? line : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
