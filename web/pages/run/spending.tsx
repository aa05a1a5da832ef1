import { formatCount, formatMoney } from "../../parts/numbers.ts";
import styles from "./timeline.module.css";

interface Point {
  at: number;
  tokens: number;
  cost: number | null;
}

/** Cumulative tokens and cost on the time axis of the waterfall above. */
export function Spending({ points, from, to }: { points: readonly Point[]; from: number; to: number }) {
  const last = points.at(-1)!;
  const x = (at: number): number => (1000 * Math.min(to, Math.max(from, at)) - 1000 * from) / (to - from);
  const y = (tokens: number): number => 30 - (25 * tokens) / Math.max(1, last.tokens);
  // The line stays level between turns.
  const line = points.map(({ at, tokens }) => `H${x(at)}V${y(tokens)}`).join("");
  return (
    <div className={styles["spending"]}>
      <span>
        Tokens <span className="faint">{last.cost ? "and cost" : ""}</span>
      </span>
      <svg
        viewBox="0 0 1000 32"
        preserveAspectRatio="none"
        role="img"
        aria-label={`${formatCount(last.tokens)} tokens${last.cost === null ? "" : `, ${formatMoney(last.cost)}`}, in ${points.length} turns`}
      >
        <path d={`M0 30${line}H1000V30Z`} className={styles["area"]} />
        <path d={`M0 30${line}H1000`} className={styles["curve"]} />
        {points.map(({ at, tokens, cost }, index) => (
          <rect key={index} x={x(at) - 6} y={0} width={12} height={32} className={styles["hit"]}>
            <title>
              {`After turn ${index + 1}: ${formatCount(tokens)} tokens${cost === null ? "" : `, ${formatMoney(cost)}`}`}
            </title>
          </rect>
        ))}
      </svg>
      <span className={styles["time"]}>
        {formatCount(last.tokens)}
        {last.cost ? <span className="faint"> {formatMoney(last.cost)}</span> : null}
      </span>
    </div>
  );
}
