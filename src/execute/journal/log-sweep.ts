import { readdir, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "../port/backoff.ts";
import { isShipped, parseLogName } from "./run-logs.ts";

export interface LogSweepOptions {
  directory: string;
  /** How long a log is kept after its run finished. */
  keepMs: number;
  everyMs: number;
  now: () => Date;
  onNotice: (message: string, cause?: unknown) => void;
}

/** Removes old logs now and then every `everyMs`. Logs that were not shipped stay. */
export function startLogSweep(options: LogSweepOptions): { stop(): Promise<void> } {
  const stopping = new AbortController();
  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await sweepOnce(options).catch((error: unknown) => options.onNotice("old logs could not be removed", error));
      await sleep(options.everyMs, stopping.signal);
    }
  }
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

async function sweepOnce({ directory, keepMs, now }: LogSweepOptions): Promise<void> {
  const before = now().getTime() - keepMs;
  const names = await unlessMissing(readdir(directory));
  for (const name of names ?? []) {
    if (parseLogName(name) === null) continue;
    const path = join(directory, name);
    const found = await unlessMissing(stat(path));
    if (found && found.mtimeMs < before && isShipped(path)) await unlessMissing(unlink(path));
  }
}

/** null if another runner removed it first, or there has never been a log. */
async function unlessMissing<T>(found: Promise<T>): Promise<T | null> {
  return found.catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  });
}
