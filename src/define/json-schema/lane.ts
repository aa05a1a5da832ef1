import type { Worker } from "node:worker_threads";
import { createFairQueue } from "./fair-queue.ts";
import { type CheckResult, type Job, type Report, workerMark } from "./protocol.ts";
import { startThread } from "../start-thread.ts";
import { threadCpuMs } from "./thread-time.ts";

/** A worker thread and its queue. */
export interface Lane {
  readonly size: number;
  count(caller: string): number;
  add(check: PendingCheck): void;
  /** Cancels a check whose caller has disconnected. If it is already running, its thread is terminated. */
  drop(check: PendingCheck): void;
  /** Removes and returns this caller's checks that have not started. */
  removeQueued(caller: string): PendingCheck[];
  /** Terminates the thread. Pending checks resolve to `late`. Idempotent. */
  stop(): Promise<void>;
}

export interface PendingCheck {
  caller: string;
  job: Job;
  settle(result: CheckResult): void;
  /** Called with the thread time used, and whether the thread had to be terminated. */
  onSpent(ms: number, wasTerminated: boolean): void;
}

export interface LaneOptions {
  checkMs: number;
  compileMs: number;
  startMs: number;
  idleMs: number;
}

/** A job may take this many times its CPU deadline in wall time, if it does not get the CPU. */
const maxWallFactor = 60;

const engineThread = { entry: "define/json-schema/engine.ts", mark: workerMark, maxMemoryMb: 256 };

export function openLane({ checkMs, compileMs, startMs, idleMs }: LaneOptions): Lane {
  const queue = createFairQueue<PendingCheck>();
  let worker: Worker | undefined;
  let current: PendingCheck | undefined;
  let timer: NodeJS.Timeout | undefined;
  let thread: string | null = null;
  let jobStart = { cpu: null as number | null, wall: 0 };
  let starting = false;
  let launch: Promise<void> | undefined;
  let stopped = false;

  const usedMs = (start: typeof jobStart): number => {
    const cpu = threadCpuMs(thread);
    return cpu === null || start.cpu === null ? performance.now() - start.wall : cpu - start.cpu;
  };

  const readClocks = (): typeof jobStart => ({ cpu: threadCpuMs(thread), wall: performance.now() });

  const startDeadline = (ms: number, message: string): void => {
    const start = readClocks();
    const recheckAfter = (waitMs: number): void => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        const remainingMs = ms - usedMs(start);
        if (remainingMs <= 0 || performance.now() - start.wall > ms * maxWallFactor) discard(message);
        else recheckAfter(Math.max(remainingMs, 10));
      }, waitMs);
    };
    recheckAfter(ms);
  };

  /** Runs one job at a time, so that it is clear which job exceeded its deadline. */
  const advance = (): void => {
    if (current || starting || stopped) return;
    if (queue.size === 0) return becomeIdle();
    if (!worker) return launchWorker();
    current = queue.shift()!;
    jobStart = readClocks();
    worker.ref();
    startDeadline(compileMs, "the schema took too long to compile");
    worker.postMessage(current.job, []);
  };

  const becomeIdle = (): void => {
    clearTimeout(timer);
    if (!worker) return;
    worker.unref();
    timer = setTimeout(() => discard("idle"), idleMs);
    timer.unref();
  };

  const launchWorker = (): void => {
    starting = true;
    clearTimeout(timer);
    launch = startThread(engineThread).then(
      (started) => {
        worker = started;
        thread = null;
        startDeadline(startMs, "the checker did not start in time");
        started.on("message", (report: Report) => {
          if (worker === started) onReport(report);
        });
        started.on("error", (error) => {
          if (worker === started) discard(`the check failed: ${error.message}`);
        });
        if (stopped) discard("the check was stopped");
      },
      (error: unknown) => {
        failJob(`the checker cannot be started: ${String(error)}`);
        starting = false;
        advance();
      },
    );
  };

  const onReport = (report: Report): void => {
    switch (report.type) {
      case "ready":
        ({ thread } = report);
        starting = false;
        break;
      case "compiled":
        return startDeadline(checkMs, `the check took longer than ${checkMs} ms`);
      case "done": {
        clearTimeout(timer);
        const done = current;
        current = undefined;
        done?.onSpent(usedMs(jobStart), false);
        done?.settle({ faults: report.faults });
        break;
      }
      default:
        report satisfies never;
    }
    advance();
  };

  /** Terminates the worker, even in the middle of a regular expression. The next job gets a new worker. */
  const discard = (message: string): void => {
    clearTimeout(timer);
    current?.onSpent(usedMs(jobStart), true);
    const terminated = worker?.terminate();
    worker = undefined;
    failJob(message);
    starting = false;
    terminated?.then(advance, advance);
  };

  /** Fails the current job. If the worker did not start, fails the first queued job instead, so that starting is not retried forever. */
  const failJob = (message: string): void => {
    const failed = current ?? (starting ? queue.shift() : undefined);
    current = undefined;
    failed?.settle(late(message));
  };

  return {
    get size() {
      return queue.size;
    },
    count: (caller) => queue.count(caller) + (current?.caller === caller ? 1 : 0),
    add(check) {
      if (stopped) return check.settle(late("the check was stopped"));
      queue.push(check.caller, check);
      advance();
    },
    drop(check) {
      if (queue.remove(check.caller, check)) check.settle(late(disconnected));
      else if (current === check) discard(disconnected);
    },
    removeQueued: (caller) => queue.removeAll(caller),
    async stop() {
      stopped = true;
      clearTimeout(timer);
      current?.settle(late("the check was stopped"));
      current = undefined;
      for (let next = queue.shift(); next; next = queue.shift()) next.settle(late("the check was stopped"));
      const terminated = worker;
      worker = undefined;
      await terminated?.terminate();
      await launch;
    },
  };
}

const disconnected = "the caller has disconnected";

export function late(message: string): CheckResult {
  return { faults: [{ path: "", message }], reason: "late" };
}
