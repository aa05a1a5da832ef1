import { readdir, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "../port/backoff.ts";
import { isShipped, parseLogName } from "./run-logs.ts";

export interface LogSweepOptions {
  directory: string;
  /** How long to keep a log after its run finished. */
  keepMs: number;
  everyMs: number;
  now: () => Date;
  onNotice: (message: string, cause?: unknown) => void;
}

/** Removes old logs at once, and again every `everyMs`. Logs that were not shipped stay. */
export function startLogSweep(options: LogSweepOptions): { stop(): Promise<void> } {
  const stopController = new AbortController();
  async function run(): Promise<void> {
    while (!stopController.signal.aborted) {
      await sweepOnce(options).catch((error: unknown) => options.onNotice("old logs could not be removed", error));
      await sleep(options.everyMs, stopController.signal);
    }
  }
  const running = run();
  return {
    async stop() {
      stopController.abort();
      await running;
    },
  };
}

async function sweepOnce({ directory, keepMs, now }: LogSweepOptions): Promise<void> {
  const expiryTime = now().getTime() - keepMs;
  const names = await unlessMissing(readdir(directory));
  for (const name of names ?? []) {
    if (parseLogName(name) === null) continue;
    const path = join(directory, name);
    const stats = await unlessMissing(stat(path));
    if (stats && stats.mtimeMs < expiryTime && isShipped(path)) await unlessMissing(unlink(path));
  }
}

/** Resolves with null if the file or directory does not exist, because another runner removed it or no log was ever written. */
async function unlessMissing<T>(result: Promise<T>): Promise<T | null> {
  return result.catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  });
}
