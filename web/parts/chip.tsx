import styles from "./chip.module.css";

/** A filter and what it is set to; opens its menu. */
export function Chip({ what, value, ...rest }: { what: string; value: string }) {
  return (
    <button type="button" className={styles["chip"]} {...rest}>
      {what} <b>{value}</b>
    </button>
  );
}

export const chipClass = styles["chip"];
