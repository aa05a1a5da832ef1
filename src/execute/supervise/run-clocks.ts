import type { StopReason } from "../../model/states.ts";
import { startPausableTimer, type PausableTimer } from "./pausable-timer.ts";

/** The time limits of one run. */
export interface RunClocks {
  begin(limits: { timeoutMs: number; idleMs: number | null }): void;
  /** The executor has said something. */
  heard(): void;
  /** While the run waits for a person: neither its time nor its silence counts. */
  pauseWork(): void;
  resumeWork(): void;
  /** While files are uploaded, which has limits of its own: it says nothing, and a stop waits for it. */
  pauseUpload(): void;
  resumeUpload(): void;
  /** The run is being stopped: it has this long. Called again only to make that shorter. */
  startDeadline(graceMs: number): void;
  readonly hasDeadline: boolean;
  end(): void;
}

export interface RunClocksOptions {
  abort: (reason: StopReason) => void;
  /** The grace is over. */
  onGraceOver: () => void;
  /** From there to the end of everything. */
  reactMs: number;
  onGivenUp: () => void;
  monotonic: () => number;
}

export function createRunClocks({ abort, monotonic, ...options }: RunClocksOptions): RunClocks {
  let time: PausableTimer | null = null;
  let silence: PausableTimer | null = null;
  let deadline: PausableTimer | null = null;
  return {
    begin({ timeoutMs, idleMs }) {
      time = startPausableTimer(timeoutMs, () => abort("timeout"), monotonic);
      silence = startPausableTimer(idleMs, () => abort("idle"), monotonic);
    },
    heard: () => silence?.restart(),
    pauseWork() {
      time?.pause();
      silence?.pause();
    },
    resumeWork() {
      time?.resume();
      silence?.resume();
    },
    pauseUpload() {
      silence?.pause();
      deadline?.pause();
    },
    resumeUpload() {
      silence?.resume();
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
          options.onGraceOver();
          deadline = startPausableTimer(options.reactMs, options.onGivenUp, monotonic);
        },
        monotonic,
      );
    },
    end() {
      for (const clock of [time, silence, deadline]) clock?.stop();
    },
  };
}
