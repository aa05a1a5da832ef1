import type { Worker } from "node:worker_threads";
import { createFairQueue } from "./fair-queue.ts";
import type { CheckResult, Job, Report } from "./protocol.ts";
import { startWorker } from "./start-worker.ts";
import { threadCpuMs } from "./thread-time.ts";

/** One thread, and what waits for it. */
export interface Lane {
  readonly size: number;
  countOf(caller: string): number;
  add(waiting: PendingCheck): void;
  /** Nobody waits for it any more: it does not begin, or its thread is ended. */
  drop(waiting: PendingCheck): void;
  /** What of this caller has not begun. */
  take(caller: string): PendingCheck[];
  /** Ends the thread; what still waits is answered as `late`. Idempotent. */
  stop(): Promise<void>;
}

export interface PendingCheck {
  caller: string;
  job: Job;
  answer(checked: CheckResult): void;
  /** The time of the thread that it took; and whether the thread had to be ended for it. */
  spent(ms: number, isCut: boolean): void;
}

export interface LaneOptions {
  checkMs: number;
  compileMs: number;
  startMs: number;
  idleMs: number;
}

/** Times its deadline: so long a job may take that does not get the CPU. */
const longestWait = 60;

export function openLane({ checkMs, compileMs, startMs, idleMs }: LaneOptions): Lane {
  const queue = createFairQueue<PendingCheck>();
  let worker: Worker | undefined;
  let current: PendingCheck | undefined;
  let timer: NodeJS.Timeout | undefined;
  let thread: string | null = null;
  let since = { cpu: null as number | null, wall: 0 };
  let starting = false;
  let launch: Promise<void> | undefined;
  let stopped = false;

  const usedMs = (from: typeof since): number => {
    const cpu = threadCpuMs(thread);
    return cpu === null || from.cpu === null ? performance.now() - from.wall : cpu - from.cpu;
  };

  const mark = (): typeof since => ({ cpu: threadCpuMs(thread), wall: performance.now() });

  const deadline = (ms: number, message: string): void => {
    const from = mark();
    const look = (waitMs: number): void => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        const left = ms - usedMs(from);
        if (left <= 0 || performance.now() - from.wall > ms * longestWait) discard(message);
        else look(Math.max(left, 10));
      }, waitMs);
    };
    look(ms);
  };

  /** One job at a time: only then is it clear whose time has run out. */
  const advance = (): void => {
    if (current || starting || stopped) return;
    if (queue.size === 0) return rest();
    if (!worker) return start();
    current = queue.shift()!;
    since = mark();
    worker.ref();
    deadline(compileMs, "the schema took too long to compile");
    worker.postMessage(current.job, []);
  };

  const rest = (): void => {
    clearTimeout(timer);
    if (!worker) return;
    worker.unref();
    timer = setTimeout(() => discard("idle"), idleMs);
    timer.unref();
  };

  const start = (): void => {
    starting = true;
    clearTimeout(timer);
    launch = startWorker().then(
      (started) => {
        worker = started;
        thread = null;
        deadline(startMs, "the checker did not start in time");
        started.on("message", (report: Report) => {
          if (worker === started) hear(report);
        });
        started.on("error", (error) => {
          if (worker === started) discard(`the check failed: ${error.message}`);
        });
        if (stopped) discard("the check was stopped");
      },
      (error: unknown) => {
        fail(`the checker cannot be started: ${String(error)}`);
        starting = false;
        advance();
      },
    );
  };

  const hear = (report: Report): void => {
    switch (report.type) {
      case "ready":
        ({ thread } = report);
        starting = false;
        break;
      case "compiled":
        return deadline(checkMs, `the check took longer than ${checkMs} ms`);
      case "done": {
        clearTimeout(timer);
        const done = current;
        current = undefined;
        done?.spent(usedMs(since), false);
        done?.answer({ faults: report.faults });
        break;
      }
      default:
        report satisfies never;
    }
    advance();
  };

  /** Ends the worker whatever it is doing, a regular expression included; the next job gets a new one. */
  const discard = (message: string): void => {
    clearTimeout(timer);
    current?.spent(usedMs(since), true);
    const ending = worker?.terminate();
    worker = undefined;
    fail(message);
    starting = false;
    ending?.then(advance, advance);
  };

  /** Of a start that failed it is the first in the queue that hears of it, so that nothing is tried for ever. */
  const fail = (message: string): void => {
    const victim = current ?? (starting ? queue.shift() : undefined);
    current = undefined;
    victim?.answer(late(message));
  };

  return {
    get size() {
      return queue.size;
    },
    countOf: (caller) => queue.countOf(caller) + (current?.caller === caller ? 1 : 0),
    add(waiting) {
      if (stopped) return waiting.answer(late("the check was stopped"));
      queue.push(waiting.caller, waiting);
      advance();
    },
    drop(waiting) {
      if (queue.remove(waiting.caller, waiting)) waiting.answer(late(gone));
      else if (current === waiting) discard(gone);
    },
    take: (caller) => queue.take(caller),
    async stop() {
      stopped = true;
      clearTimeout(timer);
      current?.answer(late("the check was stopped"));
      current = undefined;
      for (let next = queue.shift(); next; next = queue.shift()) next.answer(late("the check was stopped"));
      const ending = worker;
      worker = undefined;
      await ending?.terminate();
      await launch;
    },
  };
}

const gone = "the caller has disconnected";

export function late(message: string): CheckResult {
  return { faults: [{ path: "", message }], why: "late" };
}
