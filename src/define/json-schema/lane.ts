import type { Worker } from "node:worker_threads";
import { createFairQueue } from "./fair-queue.ts";
import { type CheckResult, type CheckRequest, type Report, workerName } from "./protocol.ts";
import { startThread } from "../start-thread.ts";
import { readThreadCpuMs } from "./thread-time.ts";

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
  request: CheckRequest;
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

/** A check may take this many times its CPU deadline in wall time, if it does not get the CPU. */
const maxWallFactor = 60;

const engineThread = { entry: "define/json-schema/engine.ts", name: workerName, maxMemoryMb: 256 };

export function openLane({ checkMs, compileMs, startMs, idleMs }: LaneOptions): Lane {
  const queue = createFairQueue<PendingCheck>();
  let worker: Worker | undefined;
  let current: PendingCheck | undefined;
  let timer: NodeJS.Timeout | undefined;
  let thread: string | null = null;
  let requestStart = { cpu: null as number | null, wall: 0 };
  let isStarting = false;
  let launch: Promise<void> | undefined;
  let isStopped = false;

  const measureUsedMs = (start: typeof requestStart): number => {
    const cpu = readThreadCpuMs(thread);
    return cpu === null || start.cpu === null ? performance.now() - start.wall : cpu - start.cpu;
  };

  const readClocks = (): typeof requestStart => ({ cpu: readThreadCpuMs(thread), wall: performance.now() });

  const startDeadline = (ms: number, message: string): void => {
    const start = readClocks();
    const recheckAfter = (waitMs: number): void => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        const remainingMs = ms - measureUsedMs(start);
        if (remainingMs <= 0 || performance.now() - start.wall > ms * maxWallFactor) discard(message);
        else recheckAfter(Math.max(remainingMs, 10));
      }, waitMs);
    };
    recheckAfter(ms);
  };

  /** Runs one check at a time, so that it is clear which check exceeded its deadline. */
  const advance = (): void => {
    if (current || isStarting || isStopped) return;
    if (queue.size === 0) return becomeIdle();
    if (!worker) return launchWorker();
    current = queue.shift()!;
    requestStart = readClocks();
    worker.ref();
    startDeadline(compileMs, "the schema took too long to compile");
    worker.postMessage(current.request, []);
  };

  const becomeIdle = (): void => {
    clearTimeout(timer);
    if (!worker) return;
    worker.unref();
    timer = setTimeout(() => discard("idle"), idleMs);
    timer.unref();
  };

  const launchWorker = (): void => {
    isStarting = true;
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
        if (isStopped) discard("the check was stopped");
      },
      (error: unknown) => {
        failRequest(`the checker cannot be started: ${String(error)}`);
        isStarting = false;
        advance();
      },
    );
  };

  const onReport = (report: Report): void => {
    switch (report.type) {
      case "ready":
        ({ thread } = report);
        isStarting = false;
        break;
      case "compiled":
        return startDeadline(checkMs, `the check took longer than ${checkMs} ms`);
      case "done": {
        clearTimeout(timer);
        const done = current;
        current = undefined;
        done?.onSpent(measureUsedMs(requestStart), false);
        done?.settle({ faults: report.faults });
        break;
      }
      default:
        report satisfies never;
    }
    advance();
  };

  /** Terminates the worker, even in the middle of a regular expression. The next check gets a new worker. */
  const discard = (message: string): void => {
    clearTimeout(timer);
    current?.onSpent(measureUsedMs(requestStart), true);
    const terminated = worker?.terminate();
    worker = undefined;
    failRequest(message);
    isStarting = false;
    terminated?.then(advance, advance);
  };

  /**
   * Fails the current check. If the worker did not start, fails the first queued check instead, so that starting is not
   * retried forever.
   */
  const failRequest = (message: string): void => {
    const failed = current ?? (isStarting ? queue.shift() : undefined);
    current = undefined;
    failed?.settle(createLateResult(message));
  };

  return {
    get size() {
      return queue.size;
    },
    count: (caller) => queue.count(caller) + (current?.caller === caller ? 1 : 0),
    add(check) {
      if (isStopped) return check.settle(createLateResult("the check was stopped"));
      queue.push(check.caller, check);
      advance();
    },
    drop(check) {
      if (queue.remove(check.caller, check)) check.settle(createLateResult(disconnected));
      else if (current === check) discard(disconnected);
    },
    removeQueued: (caller) => queue.removeAll(caller),
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      current?.settle(createLateResult("the check was stopped"));
      current = undefined;
      for (let next = queue.shift(); next; next = queue.shift()) next.settle(createLateResult("the check was stopped"));
      const terminated = worker;
      worker = undefined;
      await terminated?.terminate();
      await launch;
    },
  };
}

const disconnected = "the caller has disconnected";

export function createLateResult(message: string): CheckResult {
  return { faults: [{ path: "", message }], reason: "incomplete" };
}
