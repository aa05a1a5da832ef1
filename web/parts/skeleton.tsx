import styles from "./skeleton.module.css";

/** A placeholder for rows that are still loading. */
export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div className={styles["skeleton"]} role="status" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} style={{ width: `${92 - ((index * 17) % 40)}%` }} />
      ))}
    </div>
  );
}
