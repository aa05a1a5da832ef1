import type { ReactNode } from "react";
import type { RunStatus } from "../../src/model/states.ts";
import { Icon, type IconName } from "./icon.tsx";
import styles from "./status.module.css";

type Tone = "ok" | "bad" | "wait" | "park" | "run" | "idle";

const appearances: Record<RunStatus, { icon: IconName; tone: Tone; word: string; spin?: true }> = {
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

interface MarkProps {
  icon: IconName;
  tone: Tone;
  word: ReactNode;
  /** The status that the mark shows, for styles and tests. */
  status: string;
  spin?: boolean;
}

/** Shows a status as icon, text and colour, so that none of the three is required to read it. */
export function Mark({ icon, tone, word, status, spin = false }: MarkProps) {
  return (
    <span className={`${styles["status"]} ${styles[tone]}`} data-status={status}>
      <Icon name={icon} spin={spin} />
      {word}
    </span>
  );
}

export function Status({ status, word, iconOnly = false }: { status: RunStatus; word?: string; iconOnly?: boolean }) {
  const { word: usual, ...look } = appearances[status];
  const text = word ?? usual;
  return <Mark status={status} {...look} word={iconOnly ? <span className="hidden-visually">{text}</span> : text} />;
}

export function statusWord(status: RunStatus): string {
  return appearances[status].word;
}

export function toneOf(status: RunStatus): Tone {
  return appearances[status].tone;
}
