import styles from "./meters.module.css";

interface Meter {
  name: string;
  value: number;
  shown: string;
}

/** Names with bars, longest first. */
export function Meters({ rows, tone }: { rows: readonly Meter[]; tone: "accent" | "bad" }) {
  const most = Math.max(...rows.map(({ value }) => value), Number.MIN_VALUE);
  return (
    <ul>
      {rows.map(({ name, value, shown }) => (
        <li key={name} className={styles["meter"]}>
          <span className="ellipsis">{name}</span>
          <span aria-hidden="true">
            <span className={styles[tone]} style={{ width: `${Math.max(2, (100 * value) / most)}%` }} />
          </span>
          <span className="dim">{shown}</span>
        </li>
      ))}
    </ul>
  );
}
