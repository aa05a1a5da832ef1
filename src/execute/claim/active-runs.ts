import type { Delta } from "../../model/executor.ts";
import type { Claim, Order } from "../../model/runner-port.ts";
import type { StopReason } from "../../model/states.ts";
import type { Journal } from "../journal/journal.ts";
import { createRunLog, type RunLogsOptions } from "../journal/run-logs.ts";
import type { SessionPort } from "../sessions/session-port.ts";
import type { Shipper } from "../journal/shipper.ts";
import { type SupervisedRun, superviseRun } from "../supervise/supervise-run.ts";
import type { SuperviseOptions } from "../supervise/supervise-options.ts";
import type { Upload } from "../collect/upload.ts";

/** The runs that one registration is working on. */
export interface ActiveRuns {
  readonly running: number;
  countFreeSlots(): number;
  /** Whether an active run works in this session or copies from it. */
  usesSession(session_id: string): boolean;
  /** Starts the run, unless it has already been started. */
  startRun(claim: Claim): void;
  dispatch(order: Order): void;
  /** Parks runs that wait for a person, now or later, if their executor can park. Another runner continues them. */
  park(): void;
  /** Parks waiting runs and stops all others at once. */
  shutDown(): void;
  abortAll(reason: StopReason): void;
  /** Waits until all runs taken so far have ended. */
  waitForRuns(): Promise<void>;
  /** Waits until every log has been shipped and closed. */
  waitForLogs(): Promise<void>;
}

export interface ActiveRunsOptions {
  slots: () => number;
  supervise: SuperviseOptions;
  logs: RunLogsOptions;
  shipper: Shipper;
  upload: Upload;
  sessions: SessionPort;
  onSlotFreed: () => void;
  onNotice: (message: string, cause?: unknown) => void;
}

/** How long a waiting run may take to save its state when the runner shuts down. */
const parkTimeoutMs = 2000;

export function createActiveRuns(options: ActiveRunsOptions): ActiveRuns {
  const { slots, supervise, logs, shipper, onSlotFreed, onNotice } = options;
  const runs = new Map<string, { supervised: SupervisedRun; sessions: (string | null)[] }>();

  const closingLogs = new Set<Promise<void>>();
  function closeLogAfter(shipped: Promise<"shipped" | "lost">, journal: Journal): void {
    const closed = shipped
      .then((result) => (result === "shipped" ? journal.markShipped() : journal.remove()))
      .catch((error: unknown) => onNotice(`the log of run ${journal.run_id} could not be removed`, error))
      .finally(() => closingLogs.delete(closed));
    closingLogs.add(closed);
  }

  return {
    get running() {
      return runs.size;
    },
    countFreeSlots: () => slots() - [...runs.values()].filter(({ supervised }) => !supervised.isWaiting).length,

    usesSession: (session_id) => [...runs.values()].some(({ sessions }) => sessions.includes(session_id)),

    startRun(claim) {
      const key = toAttemptKey(claim);
      if (runs.has(key)) return; // The coordinator repeated a response.
      const keepsLog = claim.invocation.agent.type === "autonomous";
      const journal = createRunLog(claim.run_id, claim.attempt, keepsLog, logs);
      const supervised = superviseRun(claim, supervise, {
        journal,
        notify: shipper.notify,
        notifyLater: shipper.notifyLater,
        flush: shipper.flush,
        onSlotFreed,
        waitForJournalSpace: () => shipper.waitForJournalSpace(journal),
        sendPartial: (delta: Delta) => shipper.sendPartial(claim.run_id, claim.attempt, delta),
        upload: options.upload,
        sessions: options.sessions,
      });
      const { session_id, forked_from } = claim.invocation;
      runs.set(key, { supervised, sessions: [session_id, forked_from] });
      const shipped = new Promise<"shipped" | "lost">((resolve) => {
        shipper.add({
          journal,
          onLost() {
            supervised.abort("lease_lost");
            resolve("lost");
          },
          onFinished: () => resolve("shipped"),
          onSpent: supervised.noteBudgetSpent,
        });
      });
      void supervised.ended.then(() => {
        runs.delete(key);
        onSlotFreed();
      });
      // Once the run has ended and its log has been shipped, nothing writes to the log any more.
      closeLogAfter(
        supervised.ended.then(() => shipped),
        journal,
      );
    },

    dispatch(order) {
      const run = runs.get(toAttemptKey(order))?.supervised;
      if (!run) return; // The run has already ended, and its finish reports that.
      if ("stop" in order) run.abort(order.stop);
      else if ("input" in order) run.addInput(order.input);
      else run.answer(order.answer);
    },

    park() {
      for (const { supervised } of runs.values()) supervised.park();
    },
    shutDown() {
      for (const { supervised } of runs.values()) {
        if (!supervised.park()) supervised.abort("shutdown");
        else {
          const timer = setTimeout(() => supervised.abort("shutdown"), parkTimeoutMs);
          void supervised.ended.then(() => clearTimeout(timer));
        }
      }
    },
    abortAll(reason) {
      for (const { supervised } of runs.values()) supervised.abort(reason);
    },
    async waitForRuns() {
      await Promise.all([...runs.values()].map(({ supervised }) => supervised.ended));
    },
    async waitForLogs() {
      await Promise.all(closingLogs);
    },
  };
}

function toAttemptKey({ run_id, attempt }: { run_id: string; attempt: number }): string {
  return `${run_id}.${attempt}`;
}
