import type { ReactNode } from "react";
import styles from "./chip.module.css";

/** A filter with its current value. Serves as the trigger of its menu. */
export function Chip({ what, value, ...rest }: { what: string; value: string }) {
  return (
    <button type="button" className={styles["chip"]} {...rest}>
      {what} <b>{value}</b>
    </button>
  );
}

/** The filters of a list. On a phone they take a row of their own. */
export function Chips({ children }: { children: ReactNode }) {
  return <div className={styles["chips"]}>{children}</div>;
}

export const chipClass = styles["chip"];
