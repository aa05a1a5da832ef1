import type { StopReason } from "../../model/states.ts";
import { startPausableTimer, type PausableTimer } from "./pausable-timer.ts";

/** The time limits of one run. */
export interface RunClocks {
  start(limits: { timeoutMs: number; idleMs: number | null }): void;
  /** Restarts the idle timeout, because the executor sent something. */
  noteActivity(): void;
  /** Pauses the time limit and the idle timeout while the run waits for a person. */
  pauseWork(): void;
  resumeWork(): void;
  /** Pauses the idle timeout and the stop deadline during an upload, which has its own limits. */
  pauseUpload(): void;
  resumeUpload(): void;
  /** Limits how long a run that is being stopped may take. A second call may only shorten the time. */
  startDeadline(graceMs: number): void;
  readonly hasDeadline: boolean;
  end(): void;
}

export interface RunClocksOptions {
  abort: (reason: StopReason) => void;
  /** Called when the grace period of a stop has passed. */
  onGraceExpired: () => void;
  /** How long after the grace period Drover gives up on the run. */
  settleTimeoutMs: number;
  onGivenUp: () => void;
  monotonic: () => number;
}

export function createRunClocks({ abort, monotonic, ...options }: RunClocksOptions): RunClocks {
  let limit: PausableTimer | null = null;
  let idle: PausableTimer | null = null;
  let deadline: PausableTimer | null = null;
  return {
    start({ timeoutMs, idleMs }) {
      limit = startPausableTimer(timeoutMs, () => abort("timeout"), monotonic);
      idle = startPausableTimer(idleMs, () => abort("idle"), monotonic);
    },
    noteActivity: () => idle?.restart(),
    pauseWork() {
      limit?.pause();
      idle?.pause();
    },
    resumeWork() {
      limit?.resume();
      idle?.resume();
    },
    pauseUpload() {
      idle?.pause();
      deadline?.pause();
    },
    resumeUpload() {
      idle?.resume();
      deadline?.resume();
    },
    get hasDeadline() {
      return deadline !== null;
    },
    startDeadline(graceMs) {
      deadline?.stop();
      deadline = startPausableTimer(
        graceMs,
        () => {
          options.onGraceExpired();
          deadline = startPausableTimer(options.settleTimeoutMs, options.onGivenUp, monotonic);
        },
        monotonic,
      );
    },
    end() {
      for (const clock of [limit, idle, deadline]) clock?.stop();
    },
  };
}
