import type { ReactNode } from "react";
import styles from "./chip.module.css";

/** A filter and what it is set to; opens its menu. */
export function Chip({ what, value, ...rest }: { what: string; value: string }) {
  return (
    <button type="button" className={styles["chip"]} {...rest}>
      {what} <b>{value}</b>
    </button>
  );
}

/** Filters of a list; below everything else on a phone. */
export function Chips({ children }: { children: ReactNode }) {
  return <div className={styles["chips"]}>{children}</div>;
}

export const chipClass = styles["chip"];
