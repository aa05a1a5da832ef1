import type { Runner } from "../data/queries.ts";
import { Icon, type IconName } from "./icon.tsx";
import { formatShortDuration, useNow } from "./time.tsx";
import styles from "./runner.module.css";

const states: Record<Runner["status"], { icon: IconName; label: string }> = {
  online: { icon: "ok", label: "Online" },
  draining: { icon: "wait", label: "Draining" },
  lost: { icon: "close", label: "Lost" },
};

export function Slots({ slots, running }: Pick<Runner, "slots" | "running">) {
  return (
    <span className={styles["slots"]} role="img" aria-label={`${running} of ${slots} slots busy`}>
      {Array.from({ length: Math.min(slots, 12) }, (_, index) => (
        <i key={index} data-busy={index < running || undefined} />
      ))}
      <span className="dim">
        {running}/{slots}
      </span>
    </span>
  );
}

/** A runner's status as icon, text and colour. */
export function RunnerState({ status }: Pick<Runner, "status">) {
  const { icon, label } = states[status];
  return (
    <span className={styles["state"]} data-state={status}>
      <Icon name={icon} /> {label}
    </span>
  );
}

/** The age of the last heartbeat, highlighted when the lease may expire soon. */
export function Heartbeat({ at }: { at: string }) {
  const age = useNow() - Date.parse(at);
  return (
    <time dateTime={at} className={age > 10_000 ? styles["late"] : "dim"}>
      {age < 5000 ? "now" : `${formatShortDuration(age)} ago`}
    </time>
  );
}
