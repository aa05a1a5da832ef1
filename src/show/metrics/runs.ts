import type { NumberedEvent } from "../../model/event.ts";
import { failureReasons } from "../../model/states.ts";
import type { Change, Op, StoreResult } from "../../model/store.ts";
import type { Registry } from "./registry.ts";

export interface RunMetrics {
  recordResult(op: Op, result: StoreResult): void;
  recordChange(change: Change): void;
}

interface Claim {
  attempt: number;
  at: number;
  isStarted: boolean;
}

const waitBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600];
const durationBounds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14_400];
/** How many claims are remembered. A run claimed through this process may finish through another one. */
const maxOpenClaims = 10_000;

/** Registers run metrics, which are derived from the operations of this process without reading from the store. */
export function watchRuns(registry: Registry, now: () => number): RunMetrics {
  const submittedRuns = registry.addCounter("drover_runs_submitted_total", "Runs submitted.");
  const claimedRuns = registry.addCounter("drover_runs_claimed_total", "Runs handed to runners, each attempt counted.");
  const endedRuns = registry.addCounter("drover_runs_finished_total", "Runs finished, by status and reason.", [
    "status",
    "reason",
  ]);
  const requeuedRuns = registry.addCounter(
    "drover_runs_requeued_total",
    "Runs that went back to pending: lost with their runner, or returned without using up an attempt.",
    ["cause"],
  );
  const queueTime = registry.addHistogram(
    "drover_run_queue_seconds",
    "Time from a run's submission to its first claim.",
    waitBounds,
  );
  const startTime = registry.addHistogram(
    "drover_run_start_seconds",
    "Time from a run's submission to its start, by its runner's clock.",
    waitBounds,
  );
  const runTime = registry.addHistogram(
    "drover_run_duration_seconds",
    "Time from a run's last claim to its end, by status.",
    durationBounds,
    ["status"],
  );
  const receivedEvents = registry.addCounter(
    "drover_events_received_total",
    "Events received from runners, including repeated ones.",
  );
  const fencedWrites = registry.addCounter(
    "drover_fenced_writes_total",
    "Writes by attempts that are no longer current, refused and audited.",
    ["op"],
  );
  const lostRunners = registry.addCounter("drover_runners_lost_total", "Runners whose lease expired.");
  const openClaims = new Map<string, Claim>();

  for (const status of ["completed", "cancelled"]) endedRuns.add(0, status, "");
  for (const reason of failureReasons) endedRuns.add(0, "failed", reason);
  for (const cause of ["lost", "returned"]) requeuedRuns.add(0, cause);
  for (const op of ["append_events", "finish_run", "add_upload"]) fencedWrites.add(0, op);

  return {
    recordResult(op, result) {
      if (!result.ok) {
        // The conflict `finished` means that the run finished in another way meanwhile.
        const isLate = result.conflict === "fenced" || result.conflict === "finished";
        if (isLate && "runner" in op) fencedWrites.add(1, op.op);
        return;
      }
      if (op.op === "create_run") {
        if (op.agent !== undefined && !("repeated" in result)) submittedRuns.add(1);
      } else if (op.op === "append_events" || op.op === "finish_run") {
        receivedEvents.add(op.events.length);
        if (!("repeated" in result)) recordStart(op.run_id, op.attempt, op.events[0]);
      } else if ("op" in result && result.op === "claim_runs") {
        for (const { run_id, attempt } of result.claims) recordClaim(run_id, attempt);
      } else if ("op" in result && result.op === "rescue") lostRunners.add(result.lost_runners.length);
    },
    recordChange(change) {
      for (const { run_id, status, reason } of change.ended ?? []) {
        endedRuns.add(1, status, reason ?? "");
        const claim = openClaims.get(run_id);
        if (claim === undefined) continue;
        runTime.observe(Math.max(0, now() - claim.at) / 1000, status);
        openClaims.delete(run_id);
      }
      for (const { run_id, lost } of change.requeued ?? []) {
        requeuedRuns.add(1, lost ? "lost" : "returned");
        openClaims.delete(run_id);
      }
    },
  };

  /** A repeated response to the same claim does not count again. */
  function recordClaim(run_id: string, attempt: number): void {
    if (openClaims.get(run_id)?.attempt === attempt) return;
    claimedRuns.add(1);
    if (attempt === 1) observeWait(queueTime, run_id, now());
    openClaims.set(run_id, { attempt, at: now(), isStarted: false });
    if (openClaims.size <= maxOpenClaims) return;
    const [oldest] = openClaims.keys();
    if (oldest !== undefined) openClaims.delete(oldest);
  }

  function recordStart(run_id: string, attempt: number, firstEvent: NumberedEvent | undefined): void {
    if (attempt !== 1 || firstEvent?.n !== 1) return;
    const claim = openClaims.get(run_id);
    if (claim?.isStarted) return;
    if (claim !== undefined) claim.isStarted = true;
    observeWait(startTime, run_id, Date.parse(firstEvent.at));
  }

  function observeWait(histogram: typeof queueTime, run_id: string, until: number): void {
    const waitSeconds = (until - parseSubmitTime(run_id)) / 1000;
    if (Number.isFinite(waitSeconds)) histogram.observe(Math.max(0, waitSeconds));
  }
}

/** Returns when a run was submitted: the first 48 bits of a version 7 UUID are its timestamp. */
export function parseSubmitTime(run_id: string): number {
  return Number.parseInt(run_id.slice(0, 8) + run_id.slice(9, 13), 16);
}
