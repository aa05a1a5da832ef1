import type { ReactNode } from "react";
import styles from "./card.module.css";

export function Card({
  title,
  note,
  actions,
  children,
  flush = false,
}: {
  title?: ReactNode;
  note?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  /** Removes the padding around the content, for tables. */
  flush?: boolean;
}) {
  return (
    <section className={styles["card"]}>
      {title === undefined ? null : (
        <div className={styles["head"]}>
          <h2>{title}</h2>
          {note === undefined ? null : <span className="dim">{note}</span>}
          {actions === undefined ? null : <span className={styles["actions"]}>{actions}</span>}
        </div>
      )}
      <div className={flush ? styles["flush"] : styles["body"]}>{children}</div>
    </section>
  );
}
