import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { nestedLogFile } from "../../model/state-layout.ts";
import { removeLog } from "./nested-log.ts";
import { createLogReader, type LogReaderOptions } from "./log-reader.ts";

interface RecoverOptions extends Omit<LogReaderOptions, "fd" | "startedAtMs"> {
  runsDirectory: string;
  recorded: ReadonlyMap<string, "open" | "ended">;
}

/**
 * Recovers the reports of nested commands in a run whose runner died: records unread reports, ends open executions and
 * removes the file. Returns the ids of the nested executions. Reads only a regular file, since a run can put anything
 * in its place.
 */
export async function recoverNested(
  { runsDirectory, ...options }: RecoverOptions,
  reason: string,
): Promise<ReadonlySet<string>> {
  const prefix = `${options.run_id}.${options.attempt}.`;
  const recorded = new Map([...options.recorded].filter(([id]) => id.startsWith(prefix)));
  const path = nestedLogFile(runsDirectory, options.run_id, options.attempt);
  const fd = tryOpen(path);
  try {
    const stat = fd === null ? null : fstatSync(fd);
    const isFile = stat?.isFile() === true;
    const reader = createLogReader({ ...options, recorded, fd: fd ?? -1, startedAtMs: stat?.birthtimeMs ?? 0 });
    while (isFile && reader.read());
    return reader.end(reason);
  } finally {
    if (fd !== null) closeSync(fd);
    await removeLog(path);
  }
}

function tryOpen(path: string): number | null {
  try {
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
    return openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    // Missing, a symlink, a socket or not readable: nothing to recover.
    if (error instanceof Error && "code" in error) return null;
    throw error;
  }
}
