import { closeSync, constants, fstatSync, mkdirSync, openSync, rmdirSync, unlinkSync } from "node:fs";
import { dirname } from "node:path";
import { HostError } from "../../model/errors.ts";
import { nestedLogFile } from "../../model/state-layout.ts";
import type { LogReader, LogReaderOptions } from "./log-reader.ts";

/** Where the `drover exec` commands inside one attempt report, and the outer Drover reads. */
export interface NestedLog {
  readonly path: string;
  /** Everything of the run has ended: records what is left, ends what has no end, and removes the file. Idempotent. */
  close(): Promise<void>;
}

export interface NestedLogOptions extends Omit<LogReaderOptions, "fd" | "since" | "known"> {
  runs: string;
}

/** A command that takes shorter is read at its end only. */
const everyMs = 250;

/**
 * Makes the file and keeps it open: whatever the run puts in its place, a pipe, a link or a folder, is never opened.
 * Nothing else is loaded unless a command writes to it.
 */
export function openNestedLog(options: NestedLogOptions): NestedLog {
  const path = nestedLogFile(options.runs, options.run_id, options.attempt);
  const fd = createFile(path);
  const since = options.now().getTime();
  let reader: LogReader | null = null;
  let reading: Promise<void> = Promise.resolve();
  let closing: Promise<void> | null = null;

  const read = (): Promise<void> =>
    (reading = reading.then(async () => {
      if (fstatSync(fd).size === 0) return;
      reader ??= (await import("./log-reader.ts")).createLogReader({ ...options, fd, since });
      while (reader.read()) await new Promise((resolve) => setImmediate(resolve));
    }));
  // a disk that cannot be read now is read at the end, which throws
  const timer = setInterval(() => void read().catch(() => undefined), everyMs).unref();

  async function close(): Promise<void> {
    clearInterval(timer);
    try {
      await reading.catch(() => undefined);
      reading = Promise.resolve();
      await read();
      reader?.end("The command that ran it ended first, and did not report its end.");
    } finally {
      closeSync(fd);
      await removeLog(path);
    }
  }
  return { path, close: () => (closing ??= close()) };
}

/** The folder is nearly always there. */
function openNew(path: string): number {
  const flags = constants.O_RDONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  try {
    return openSync(path, flags, 0o600);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    return openSync(path, flags, 0o600);
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error ? Reflect.get(error, "code") : null;
}

function createFile(path: string): number {
  try {
    return openNew(path);
  } catch (cause) {
    const code = codeOf(cause);
    const full = code === "ENOSPC" || code === "EDQUOT";
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new HostError({
      code: full ? "DROVER-STA-002" : "DROVER-STA-001",
      message: `The file that commands of the run report to cannot be created: ${why}`,
      next: full
        ? "Free space there, then run it again."
        : "Make the folder writable for this user, then run it again.",
      cause,
    });
  }
}

/** With its folder, which the run may have put other things in. What cannot be removed stays, and is in nobody's way. */
export async function removeLog(path: string): Promise<void> {
  const folder = dirname(path);
  try {
    unlinkSync(path);
    rmdirSync(folder);
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    const { removeTree } = await import("../workspace/remove-tree.ts");
    await removeTree(folder).catch(() => undefined);
  }
}
