import type { Delta } from "../model/executor.ts";
import type { Claim, Order } from "../model/runner-port.ts";
import type { StopReason } from "../model/states.ts";
import type { Journal } from "./journal.ts";
import { createRunLog, type LogsOptions } from "./logs.ts";
import type { Shipper } from "./shipper.ts";
import { type Supervised, superviseRun, type SuperviseOptions } from "./supervise.ts";
import type { Upload } from "./uploads.ts";

/** The runs under way of one registration. */
export interface HeldRuns {
  readonly running: number;
  freeSlots(): number;
  /** Whether a run under way works in this session, or copies from it. */
  usesSession(session_id: string): boolean;
  /** Held from here on, and begun. */
  take(claim: Claim): void;
  obey(order: Order): void;
  abortAll(reason: StopReason): void;
  /** Resolves when everything that was taken up to now has ended. */
  ended(): Promise<void>;
  /** Resolves when the logs are gone that nobody wants any more, which waits for those somebody does. */
  cleaned(): Promise<void>;
}

export interface HeldRunsOptions {
  slots: () => number;
  supervise: SuperviseOptions;
  logs: LogsOptions;
  shipper: Shipper;
  upload: Upload;
  slotFreed: () => void;
  onNotice: (message: string, cause?: unknown) => void;
}

export function createHeldRuns(options: HeldRunsOptions): HeldRuns {
  const { slots, supervise, logs, shipper, slotFreed, onNotice } = options;
  const runs = new Map<string, { supervised: Supervised; waiting: boolean; sessions: (string | null)[] }>();

  function setWaiting(key: string, waiting: boolean): void {
    const run = runs.get(key);
    if (run) run.waiting = waiting;
    if (waiting) slotFreed();
  }

  const cleaning = new Set<Promise<void>>();
  function clean(what: Promise<unknown>, journal: Journal): void {
    const cleaned = what
      .then(() => journal.remove())
      .catch((error: unknown) => onNotice(`the log of run ${journal.run_id} could not be removed`, error))
      .finally(() => cleaning.delete(cleaned));
    cleaning.add(cleaned);
  }

  return {
    get running() {
      return runs.size;
    },
    freeSlots: () => slots() - [...runs.values()].filter(({ waiting }) => !waiting).length,

    usesSession: (session_id) => [...runs.values()].some(({ sessions }) => sessions.includes(session_id)),

    take(claim) {
      const key = keyOf(claim);
      if (runs.has(key)) return; // the same answer twice
      const journal = createRunLog(claim.run_id, claim.attempt, logs);
      const supervised = superviseRun(claim, supervise, {
        journal,
        poke: shipper.poke,
        hurry: shipper.hurry,
        room: () => shipper.room(journal),
        partial: (delta: Delta) => shipper.partial(claim.run_id, claim.attempt, delta),
        upload: options.upload,
        onWaiting: () => setWaiting(key, true),
        onGoingOn: () => setWaiting(key, false),
      });
      const { session_id, forked_from } = claim.invocation;
      runs.set(key, { supervised, waiting: false, sessions: [session_id, forked_from] });
      const settled = new Promise<void>((resolve) => {
        shipper.add({
          journal,
          onLost() {
            supervised.abort("lease_lost");
            resolve();
          },
          onFinished: resolve,
        });
      });
      void supervised.ended.then(() => {
        runs.delete(key);
        slotFreed();
      });
      // when both have happened nobody wants the log any more, and nobody writes to it
      clean(Promise.all([supervised.ended, settled]), journal);
    },

    obey(order) {
      const run = runs.get(keyOf(order))?.supervised;
      if (!run) return; // it has ended meanwhile, which its finish tells
      if ("stop" in order) run.abort(order.stop);
      else if ("answer" in order) run.answer(order.answer.request_id, order.answer.answer);
      else run.input(order.input);
    },

    abortAll(reason) {
      for (const { supervised } of runs.values()) supervised.abort(reason);
    },
    async ended() {
      await Promise.all([...runs.values()].map(({ supervised }) => supervised.ended));
    },
    async cleaned() {
      await Promise.all(cleaning);
    },
  };
}

function keyOf({ run_id, attempt }: { run_id: string; attempt: number }): string {
  return `${run_id}.${attempt}`;
}
