import type { ReactNode } from "react";
import styles from "./chip.module.css";

/** A filter with its current value. Serves as the trigger of its menu. */
export function Chip({ label, value, ...rest }: { label: string; value: string }) {
  return (
    <button type="button" className={styles["chip"]} {...rest}>
      {label} <b>{value}</b>
    </button>
  );
}

/** The filters of a list. On a phone they fill a separate row. */
export function Chips({ children }: { children: ReactNode }) {
  return <div className={styles["chips"]}>{children}</div>;
}

export const chipClass = styles["chip"];
