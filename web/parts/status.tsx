import type { RunStatus } from "../../src/model/states.ts";
import { Icon, type IconName } from "./icon.tsx";
import styles from "./status.module.css";

type Tone = "ok" | "bad" | "wait" | "park" | "run" | "idle";

const shown: Record<RunStatus, { icon: IconName; tone: Tone; word: string; spin?: true }> = {
  pending: { icon: "idle", tone: "idle", word: "Pending" },
  claimed: { icon: "run", tone: "run", word: "Claimed", spin: true },
  running: { icon: "run", tone: "run", word: "Running", spin: true },
  waiting: { icon: "wait", tone: "wait", word: "Waiting" },
  parked: { icon: "park", tone: "park", word: "Parked" },
  stopping: { icon: "stop", tone: "idle", word: "Stopping" },
  completed: { icon: "ok", tone: "ok", word: "Completed" },
  failed: { icon: "bad", tone: "bad", word: "Failed" },
  cancelled: { icon: "bad", tone: "idle", word: "Cancelled" },
};

/** An icon, a word and a colour, so that none of them has to be seen. */
export function Status({ status, word, iconOnly = false }: { status: RunStatus; word?: string; iconOnly?: boolean }) {
  const { icon, tone, word: usual, spin = false } = shown[status];
  return (
    <span className={`${styles["status"]} ${styles[tone]}`} data-status={status}>
      <Icon name={icon} spin={spin} />
      {iconOnly ? <span className="hidden-visually">{word ?? usual}</span> : (word ?? usual)}
    </span>
  );
}

export function statusWord(status: RunStatus): string {
  return shown[status].word;
}

export function toneOf(status: RunStatus): Tone {
  return shown[status].tone;
}
