import styles from "./bars.module.css";

export interface Bar {
  key: string;
  /** Shown on hover and read by screen readers. */
  title: string;
  /** The stacked parts of the bar, from the bottom up. */
  parts: readonly { tone: "accent" | "idle" | "bad"; value: number }[];
}

const height = 64;

/** A bar chart with stacked bars and labels for the first and the last bar. */
export function Bars({ bars, label, from, to, formatMax }: BarsProps) {
  const max = Math.max(Number.MIN_VALUE, ...bars.map(({ parts }) => sumParts(parts)));
  const width = 400 / Math.max(1, bars.length);
  const gap = Math.min(4, width * 0.25);
  return (
    <figure className={styles["figure"]}>
      <span className={`faint ${styles["max"]}`} aria-hidden="true">
        {formatMax(max)}
      </span>
      <svg viewBox={`0 0 400 ${height + 4}`} preserveAspectRatio="none" role="img" aria-label={label}>
        <line x1="0" x2="400" y1="0.5" y2="0.5" className={styles["top"]} />
        {bars.map(({ key, title, parts }, index) => {
          let stackedHeight = 0;
          return (
            <g key={key}>
              <title>{title}</title>
              <rect x={index * width} y={0} width={width} height={height} className={styles["hit"]} />
              {parts.map(({ tone, value }) => {
                const partHeight = value === 0 ? 0 : Math.max(1.5, (height * value) / max);
                stackedHeight += partHeight;
                return (
                  <rect
                    key={tone}
                    x={index * width + gap / 2}
                    y={height - stackedHeight}
                    width={width - gap}
                    height={partHeight}
                    className={styles[tone]}
                  />
                );
              })}
            </g>
          );
        })}
        <line x1="0" x2="400" y1={height + 1} y2={height + 1} className={styles["floor"]} />
      </svg>
      <figcaption className="faint">
        <span>{from}</span>
        <span>{to}</span>
      </figcaption>
    </figure>
  );
}

interface BarsProps {
  bars: readonly Bar[];
  label: string;
  from: string;
  to: string;
  /** Formats the highest value for the label at the top. */
  formatMax: (value: number) => string;
}

function sumParts(parts: Bar["parts"]): number {
  return parts.reduce((sum, { value }) => sum + value, 0);
}
