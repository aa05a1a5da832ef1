import { closeSync, constants, fstatSync, mkdirSync, openSync, rmdirSync, unlinkSync } from "node:fs";
import { dirname } from "node:path";
import { HostError } from "../../model/errors.ts";
import { nestedLogFile } from "../../model/state-layout.ts";
import type { LogReader, LogReaderOptions } from "./log-reader.ts";

/** The file to which `drover exec` commands inside one attempt report, and which the outer Drover reads. */
export interface NestedLog {
  readonly path: string;
  /** Call this when the run's processes have ended. Reads the rest, ends open executions and removes the file. Idempotent. */
  close(): Promise<void>;
}

export interface NestedLogOptions extends Omit<LogReaderOptions, "fd" | "startedAtMs" | "recorded"> {
  runsDirectory: string;
}

/** How often the file is read during a run. Shorter runs are read once, at their end. */
const readEveryMs = 250;

/**
 * Creates the file and keeps it open, so that a pipe, a symlink or a directory that the run puts in its place is never
 * opened. Loads the parser only if a command writes to the file.
 */
export function openNestedLog(options: NestedLogOptions): NestedLog {
  const path = nestedLogFile(options.runsDirectory, options.run_id, options.attempt);
  const fd = createLog(path);
  const startedAtMs = options.now().getTime();
  let reader: LogReader | null = null;
  let lastRead: Promise<void> = Promise.resolve();
  let closeResult: Promise<void> | null = null;

  const read = (): Promise<void> =>
    (lastRead = lastRead.then(async () => {
      if (fstatSync(fd).size === 0) return;
      reader ??= (await import("./log-reader.ts")).createLogReader({ ...options, fd, startedAtMs });
      while (reader.read()) await new Promise((resolve) => setImmediate(resolve));
    }));
  // Ignore a read error here: close() reads again and throws.
  const timer = setInterval(() => void read().catch(() => undefined), readEveryMs).unref();

  async function close(): Promise<void> {
    clearInterval(timer);
    try {
      await lastRead.catch(() => undefined);
      lastRead = Promise.resolve();
      await read();
      reader?.end("The run ended before the end of this command was reported.");
    } finally {
      closeSync(fd);
      await removeLog(path);
    }
  }
  return { path, close: () => (closeResult ??= close()) };
}

/** Creates the directory only if needed, since it nearly always exists. */
function openNewFile(path: string): number {
  const flags = constants.O_RDONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  try {
    return openSync(path, flags, 0o600);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    return openSync(path, flags, 0o600);
  }
}

function errorCode(error: unknown): unknown {
  return error instanceof Error ? Reflect.get(error, "code") : null;
}

function createLog(path: string): number {
  try {
    return openNewFile(path);
  } catch (cause) {
    const code = errorCode(cause);
    const isDiskFull = code === "ENOSPC" || code === "EDQUOT";
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new HostError({
      code: isDiskFull ? "DROVER-STA-002" : "DROVER-STA-001",
      message: `The file ${path}, to which commands of the run report, cannot be created: ${reason}`,
      next: isDiskFull
        ? "Free space on that disk, then retry the run."
        : "Make the directory writable for this user, then retry the run.",
      cause,
    });
  }
}

/** Removes the log with its directory, in which the run may have put other files. Files that cannot be removed stay. */
export async function removeLog(path: string): Promise<void> {
  const directory = dirname(path);
  try {
    unlinkSync(path);
    rmdirSync(directory);
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    const { removeTree } = await import("../workspace/remove-tree.ts");
    await removeTree(dirname(directory), directory).catch(() => undefined);
  }
}
