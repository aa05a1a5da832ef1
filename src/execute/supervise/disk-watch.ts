import type { Outcome as AnyOutcome } from "../../model/executor.ts";
import type { CommandFault, DiskUsage } from "../../model/process.ts";
import {
  measureInitialUsage,
  type DiskLimits,
  type DiskUsageWatch,
  watchDiskUsage,
} from "../../process/disk-usage-watch.ts";
import type { WrittenDirectories } from "../workspace/open-directories.ts";
import { toFailureReason } from "../executions/failure-reason.ts";

type Outcome = Exclude<AnyOutcome, { status: "parked" }>;

/** Watches the disk space that all processes of a run use together. */
export interface DiskWatch {
  stop(): void;
  /** Returns the outcome unchanged, or a failure if the run is over its limit. */
  applyLimit(outcome: Outcome): Promise<Outcome>;
}

export interface DiskWatchOptions {
  limits: DiskLimits;
  writtenDirectories: WrittenDirectories;
  /** Drover's own directories, which may lie inside a watched one. */
  excluded: readonly string[];
  signal: AbortSignal;
  onExceeded: () => void;
}

/** Does not count the files that are already in the shared directories. */
export async function watchDisk(
  options: DiskWatchOptions,
): Promise<{ ok: true; watch: DiskWatch } | { ok: false; fault: CommandFault }> {
  const { limits, writtenDirectories, excluded, signal } = options;
  if (Object.keys(limits).length === 0) return { ok: true, watch: unlimited };
  const result = await measureInitialUsage(
    { roots: writtenDirectories.shared, excluded: [...excluded, ...writtenDirectories.owned] },
    limits,
    signal,
  );
  return result.ok ? { ok: true, watch: startWatch(options, result.usage) } : result;
}

const unlimited: DiskWatch = { stop: () => undefined, applyLimit: (outcome) => Promise.resolve(outcome) };

function startWatch(
  { limits, writtenDirectories, excluded, signal, onExceeded }: DiskWatchOptions,
  initialUsage: DiskUsage,
): DiskWatch {
  let limitFault: CommandFault | null = null;
  const watch: DiskUsageWatch = watchDiskUsage({
    limits,
    roots: [...writtenDirectories.owned, ...writtenDirectories.shared],
    excluded,
    initialUsage,
    subject: "run",
    onFault(fault) {
      if (signal.aborted) return; // The run is already being stopped for another reason.
      limitFault = fault;
      onExceeded();
    },
  });
  return {
    stop: watch.stop,
    async applyLimit(outcome) {
      watch.stop();
      const fault = limitFault ?? (signal.aborted ? null : await watch.finalCheck(signal));
      return fault === null ? outcome : toLimitFailure(outcome, fault);
    },
  };
}

/** Keeps the text and data that the run returned. */
function toLimitFailure(outcome: Outcome, fault: CommandFault): Outcome {
  const reportedResult = outcome.status === "completed" || outcome.status === "failed" ? outcome : { exit_code: null };
  return {
    status: "failed",
    reason: toFailureReason({ error: fault, signal: null }),
    message: fault.message,
    exit_code: reportedResult.exit_code,
    ...("text" in reportedResult && reportedResult.text !== null ? { text: reportedResult.text } : {}),
    ...("data" in reportedResult ? { data: reportedResult.data } : {}),
  };
}
