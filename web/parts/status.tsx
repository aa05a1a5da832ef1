import type { ReactNode } from "react";
import type { RunStatus } from "../../src/model/states.ts";
import { Icon, type IconName } from "./icon.tsx";
import styles from "./status.module.css";

type Tone = "ok" | "bad" | "wait" | "park" | "run" | "idle";

const appearances: Record<RunStatus, { icon: IconName; tone: Tone; label: string; spin?: true }> = {
  pending: { icon: "idle", tone: "idle", label: "Pending" },
  claimed: { icon: "run", tone: "run", label: "Claimed", spin: true },
  running: { icon: "run", tone: "run", label: "Running", spin: true },
  waiting: { icon: "wait", tone: "wait", label: "Waiting" },
  parked: { icon: "park", tone: "park", label: "Parked" },
  stopping: { icon: "stop", tone: "idle", label: "Stopping" },
  completed: { icon: "ok", tone: "ok", label: "Completed" },
  failed: { icon: "close", tone: "bad", label: "Failed" },
  cancelled: { icon: "close", tone: "idle", label: "Cancelled" },
};

interface StatusMarkProps {
  icon: IconName;
  tone: Tone;
  label: ReactNode;
  /** The status that the icon shows, for styles and tests. */
  status: string;
  spin?: boolean;
}

/** Shows a status as icon, text and colour, so that it can be read without seeing colours. */
export function StatusMark({ icon, tone, label, status, spin = false }: StatusMarkProps) {
  return (
    <span className={`${styles["status"]} ${styles[tone]}`} data-status={status}>
      <Icon name={icon} spin={spin} />
      {label}
    </span>
  );
}

export function Status({ status, label, iconOnly = false }: { status: RunStatus; label?: string; iconOnly?: boolean }) {
  const { label: defaultLabel, ...appearance } = appearances[status];
  const text = label ?? defaultLabel;
  return (
    <StatusMark
      status={status}
      {...appearance}
      label={iconOnly ? <span className="visually-hidden">{text}</span> : text}
    />
  );
}

export function getStatusLabel(status: RunStatus): string {
  return appearances[status].label;
}

export function getStatusTone(status: RunStatus): Tone {
  return appearances[status].tone;
}
