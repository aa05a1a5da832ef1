import type { Outcome as AnyOutcome } from "../../model/executor.ts";
import type { CommandFault, DiskUsage } from "../../model/process.ts";
import {
  measureInitialUsage,
  type DiskLimits,
  type DiskUsageWatch,
  watchDiskUsage,
} from "../../process/disk-usage-watch.ts";
import type { RunDirectories } from "../workspace/open-directories.ts";
import { failureReasonOf } from "../executions/failure-reason.ts";

type Outcome = Exclude<AnyOutcome, { status: "parked" }>;

/** Watches the disk space that a run uses, whichever of its processes writes. */
export interface DiskWatch {
  stop(): void;
  /** Returns the outcome unchanged, or a failure if the run is over its limit. */
  judge(outcome: Outcome): Promise<Outcome>;
}

export interface DiskWatchOptions {
  limits: DiskLimits;
  written: RunDirectories;
  /** Drover's own directories, which may lie inside a watched one. */
  except: readonly string[];
  signal: AbortSignal;
  onPassed: () => void;
}

/** Does not count what is already in the shared directories. */
export async function watchDisk(
  options: DiskWatchOptions,
): Promise<{ ok: true; watch: DiskWatch } | { ok: false; fault: CommandFault }> {
  const { limits, written, except, signal } = options;
  if (Object.keys(limits).length === 0) return { ok: true, watch: unlimited };
  const before = await measureInitialUsage(
    { roots: written.shared, except: [...except, ...written.own] },
    limits,
    signal,
  );
  return before.ok ? { ok: true, watch: startWatch(options, before.usage) } : before;
}

const unlimited: DiskWatch = { stop: () => undefined, judge: (outcome) => Promise.resolve(outcome) };

function startWatch({ limits, written, except, signal, onPassed }: DiskWatchOptions, before: DiskUsage): DiskWatch {
  let found: CommandFault | null = null;
  const watch: DiskUsageWatch = watchDiskUsage({
    limits,
    roots: [...written.own, ...written.shared],
    except,
    before,
    whose: "run",
    onFault(fault) {
      if (signal.aborted) return; // already being stopped for another reason
      found = fault;
      onPassed();
    },
  });
  return {
    stop: watch.stop,
    async judge(outcome) {
      watch.stop();
      const fault = found ?? (signal.aborted ? null : await watch.finalCheck(signal));
      return fault === null ? outcome : overLimit(outcome, fault);
    },
  };
}

/** Keeps the text and data that the run returned. */
function overLimit(outcome: Outcome, fault: CommandFault): Outcome {
  const returned = outcome.status === "completed" || outcome.status === "failed" ? outcome : { exit_code: null };
  return {
    status: "failed",
    reason: failureReasonOf({ error: fault, signal: null }),
    message: fault.message,
    exit_code: returned.exit_code,
    ...("text" in returned && returned.text !== null ? { text: returned.text } : {}),
    ...("data" in returned ? { data: returned.data } : {}),
  };
}
