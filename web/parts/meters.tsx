import { Link, type LinkProps } from "@tanstack/react-router";
import styles from "./meters.module.css";

interface Meter {
  name: string;
  value: number;
  label: string;
  /** Links to the runs behind the value. */
  link?: Pick<LinkProps, "to" | "search">;
}

/** Horizontal bars, each with a name and a value. A single row has no bar, because there is nothing to compare it with. */
export function Meters({ rows, tone }: { rows: readonly Meter[]; tone: "accent" | "bad" | "wait" }) {
  const withBars = rows.length > 1;
  const max = Math.max(...rows.map(({ value }) => value), Number.MIN_VALUE);
  return (
    <ul>
      {rows.map(({ name, value, label, link }) => (
        <li key={name} className={styles["meter"]} data-single={!withBars || undefined}>
          {link ? (
            <Link {...link} className="ellipsis" title={name}>
              {name}
            </Link>
          ) : (
            <span className="ellipsis">{name}</span>
          )}
          {withBars ? (
            <span aria-hidden="true">
              <span className={styles[tone]} style={{ width: `${Math.max(2, (100 * value) / max)}%` }} />
            </span>
          ) : null}
          <span className="dim">{label}</span>
        </li>
      ))}
    </ul>
  );
}
