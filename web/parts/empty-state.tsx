import type { ReactNode } from "react";
import { Icon, type IconName } from "./icon.tsx";
import styles from "./empty-state.module.css";

/** Shown instead of an empty list. The children explain how to fill it. */
export function EmptyState({ icon, title, children }: { icon: IconName; title: string; children: ReactNode }) {
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
