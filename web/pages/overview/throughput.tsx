import type { RunRow } from "../../data/queries.ts";
import styles from "./throughput.module.css";

interface Hour {
  at: Date;
  completed: number;
  failed: number;
  other: number;
}

export function hoursOf(runs: readonly RunRow[]): Hour[] {
  const last = Math.floor(Date.now() / 3_600_000);
  const hours = Array.from({ length: 24 }, (_, index): Hour => ({
    at: new Date((last - 23 + index) * 3_600_000),
    completed: 0,
    failed: 0,
    other: 0,
  }));
  for (const { created_at, status } of runs) {
    const hour = hours[Math.floor(Date.parse(created_at) / 3_600_000) - last + 23];
    if (hour) hour[status === "completed" || status === "failed" ? status : "other"] += 1;
  }
  return hours;
}

/** Completed below, failed above, each hour one bar. The numbers are in a table for those who do not see bars. */
export function Throughput({ hours }: { hours: readonly Hour[] }) {
  const most = Math.max(1, ...hours.map(({ completed, failed, other }) => completed + failed + other));
  const height = (number: number): number => (number === 0 ? 0 : Math.max(2, (64 * number) / most));
  return (
    <figure className={styles["figure"]}>
      <svg viewBox="0 0 384 76" preserveAspectRatio="none" role="img" aria-label={describe(hours)}>
        {hours.map(({ at, completed, failed, other }, index) => {
          const [good, rest, bad] = [height(completed), height(other), height(failed)];
          const x = index * 16 + 2;
          return (
            <g key={at.getTime()}>
              <title>{`${at.getHours()}:00 · ${completed} completed, ${failed} failed, ${other} other`}</title>
              <rect x={x} y={0} width={12} height={72} className={styles["hit"]} />
              <rect x={x} y={72 - good} width={12} height={good} rx={1.5} className={styles["good"]} />
              <rect x={x} y={72 - good - rest} width={12} height={rest} rx={1.5} className={styles["rest"]} />
              <rect x={x} y={72 - good - rest - bad} width={12} height={bad} rx={1.5} className={styles["bad"]} />
            </g>
          );
        })}
        <line x1="0" x2="384" y1="74" y2="74" className={styles["floor"]} />
      </svg>
      <figcaption className="faint">
        <span>{hours[0]!.at.getHours()}:00</span>
        <span>now</span>
      </figcaption>
    </figure>
  );
}

function describe(hours: readonly Hour[]): string {
  const sum = (key: "completed" | "failed" | "other"): number => hours.reduce((total, hour) => total + hour[key], 0);
  return `Runs by hour: ${sum("completed")} completed, ${sum("failed")} failed, ${sum("other")} other`;
}
