import { Link, type LinkProps } from "@tanstack/react-router";
import styles from "./meters.module.css";

interface Meter {
  name: string;
  value: number;
  shown: string;
  /** Leads to the runs that the value counts. */
  link?: Pick<LinkProps, "to" | "search">;
}

/** Horizontal bars with names, in the given order. */
export function Meters({ rows, tone }: { rows: readonly Meter[]; tone: "accent" | "bad" | "wait" }) {
  const most = Math.max(...rows.map(({ value }) => value), Number.MIN_VALUE);
  return (
    <ul>
      {rows.map(({ name, value, shown, link }) => (
        <li key={name} className={styles["meter"]}>
          {link ? (
            <Link {...link} className="ellipsis" title={name}>
              {name}
            </Link>
          ) : (
            <span className="ellipsis">{name}</span>
          )}
          <span aria-hidden="true">
            <span className={styles[tone]} style={{ width: `${Math.max(2, (100 * value) / most)}%` }} />
          </span>
          <span className="dim">{shown}</span>
        </li>
      ))}
    </ul>
  );
}
