import type { StopReason } from "../../model/states.ts";
import { startStopClock, type StopClock } from "./stop-clock.ts";

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
  let time: StopClock | null = null;
  let silence: StopClock | null = null;
  let deadline: StopClock | null = null;
  return {
    begin({ timeoutMs, idleMs }) {
      time = startStopClock(timeoutMs, () => abort("timeout"), monotonic);
      silence = startStopClock(idleMs, () => abort("idle"), monotonic);
    },
    heard: () => silence?.restart(),
    pauseWork() {
      time?.pause();
      silence?.pause();
    },
    resumeWork() {
      time?.goOn();
      silence?.goOn();
    },
    pauseUpload() {
      silence?.pause();
      deadline?.pause();
    },
    resumeUpload() {
      silence?.goOn();
      deadline?.goOn();
    },
    get hasDeadline() {
      return deadline !== null;
    },
    startDeadline(graceMs) {
      deadline?.stop();
      deadline = startStopClock(
        graceMs,
        () => {
          options.onGraceOver();
          deadline = startStopClock(options.reactMs, options.onGivenUp, monotonic);
        },
        monotonic,
      );
    },
    end() {
      for (const clock of [time, silence, deadline]) clock?.stop();
    },
  };
}
