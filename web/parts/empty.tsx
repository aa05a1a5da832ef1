import type { ReactNode } from "react";
import { Icon, type IconName } from "./icon.tsx";
import styles from "./empty.module.css";

/** An empty state that explains how to fill the page. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children: ReactNode }) {
  return (
    <div className={styles["empty"]}>
      <span className={styles["icon"]}>
        <Icon name={icon} />
      </span>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div className={styles["skeleton"]} role="status" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} style={{ width: `${92 - ((index * 17) % 40)}%` }} />
      ))}
    </div>
  );
}
