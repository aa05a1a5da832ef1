import type { Stats } from "../../data/queries.ts";
import { type Bar, Bars } from "../../parts/bars.tsx";
import { Card } from "../../parts/card.tsx";
import { Meters } from "../../parts/meters.tsx";
import { formatCount, formatMoney } from "../../parts/numbers.ts";

/** Throughput, cost and failures over the selected time range. */
export function Figures({ stats, timeRange }: { stats: Stats; timeRange: string }) {
  return (
    <>
      <Throughput stats={stats} timeRange={timeRange} />
      <Cost stats={stats} />
      <Failures stats={stats} />
    </>
  );
}

function Throughput({ stats, timeRange }: { stats: Stats; timeRange: string }) {
  const buckets = stats.throughput;
  const completed = sum(buckets, (bucket) => bucket.completed);
  const share =
    stats.runs_finished === 0 ? null : `${((100 * completed) / stats.runs_finished).toFixed(1)} % completed`;
  const byDay = stats.bucket_seconds >= 86_400;
  const bars = buckets.map((bucket): Bar => ({
    key: bucket.at,
    title: `${formatBucketTime(bucket.at, byDay)} · ${bucket.completed} completed, ${bucket.failed} failed, ${bucket.cancelled} cancelled`,
    parts: [
      { tone: "accent", value: bucket.completed },
      { tone: "idle", value: bucket.cancelled },
      { tone: "bad", value: bucket.failed },
    ],
  }));
  const totals = (["completed", "failed", "cancelled"] as const).map(
    (key) => `${sum(buckets, (bucket) => bucket[key])} ${key}`,
  );
  return (
    <Card
      title={`Last ${timeRange}`}
      note={[`${formatCount(stats.runs_finished)} ${stats.runs_finished === 1 ? "run" : "runs"}`, share]
        .filter(Boolean)
        .join(" · ")}
    >
      <Bars
        bars={bars}
        label={`Finished runs: ${totals.join(", ")}`}
        from={formatBucketTime(stats.since, byDay)}
        to="now"
        formatMax={(value) => (value >= 1 ? formatCount(value) : "")}
      />
    </Card>
  );
}

function Cost({ stats: { cost } }: { stats: Stats }) {
  const spent = sum(cost, ({ cost_usd }) => cost_usd ?? 0);
  const tokens = sum(cost, sumTokens);
  // A local model uses tokens but costs nothing.
  const unit = spent > 0 ? moneyUnit : tokenUnit;
  const agents = groupBy(cost, ({ agent_name }) => agent_name, unit.getValue).toSorted(([, a], [, b]) => b - a);
  const days = groupBy(cost, ({ day }) => day, unit.getValue).toSorted(([a], [b]) => a.localeCompare(b));
  return (
    <Card
      title="Cost by agent"
      note={[spent > 0 ? formatMoney(spent) : null, tokens > 0 ? `${formatCount(tokens)} tokens` : null]
        .filter(Boolean)
        .join(" · ")}
    >
      {agents.length === 0 ? (
        <p className="faint">No run has used a model.</p>
      ) : (
        <Meters
          rows={agents.slice(0, 6).map(([name, value]) => ({
            name,
            value,
            label: unit.show(value),
            link: { to: "/runs", search: { agent: name } },
          }))}
          tone="accent"
        />
      )}
      {days.length > 1 ? (
        <div style={{ marginTop: 16 }}>
          <Bars
            bars={days.map(([day, value]) => ({
              key: day,
              title: [`${day} · ${unit.show(value)}`, ...formatAgentLines(cost, day, unit)].join("\n"),
              parts: [{ tone: "accent", value }],
            }))}
            label={`Cost by day: ${days.map(([day, value]) => `${day} ${unit.show(value)}`).join(", ")}`}
            from={days[0]![0]}
            to={days.at(-1)![0]}
            formatMax={unit.show}
          />
        </div>
      ) : null}
    </Card>
  );
}

type CostRow = Stats["cost"][number];

interface Unit {
  getValue: (row: CostRow) => number;
  show: (value: number) => string;
}

const moneyUnit: Unit = { getValue: ({ cost_usd }) => cost_usd ?? 0, show: formatMoney };
const tokenUnit: Unit = { getValue: sumTokens, show: (value) => formatCount(Math.round(value)) };

function sumTokens({ input_tokens, output_tokens }: CostRow): number {
  return input_tokens + output_tokens;
}

function formatAgentLines(cost: readonly CostRow[], day: string, unit: Unit): string[] {
  return cost.filter((row) => row.day === day).map((row) => `${row.agent_name} ${unit.show(unit.getValue(row))}`);
}

function Failures({ stats: { failures } }: { stats: Stats }) {
  const total = sum(failures, ({ count: number }) => number);
  return (
    <Card title="Failures by reason" note={total === 0 ? undefined : formatCount(total)}>
      {failures.length === 0 ? (
        <p className="faint">Nothing failed.</p>
      ) : (
        <Meters
          rows={failures.slice(0, 6).map(({ reason, count: number }) => ({
            name: reason,
            value: number,
            label: formatCount(number),
            link: { to: "/runs", search: { status: ["failed"] } },
          }))}
          tone="bad"
        />
      )}
    </Card>
  );
}

function sum<T>(items: readonly T[], getValue: (item: T) => number): number {
  return items.reduce((subtotal, item) => subtotal + getValue(item), 0);
}

function groupBy<T>(
  items: readonly T[],
  getKey: (item: T) => string,
  getValue: (item: T) => number,
): [string, number][] {
  const sums = new Map<string, number>();
  for (const item of items) sums.set(getKey(item), (sums.get(getKey(item)) ?? 0) + getValue(item));
  return [...sums].filter(([, value]) => value > 0);
}

function formatBucketTime(at: string, byDay: boolean): string {
  return new Date(at).toLocaleString(
    undefined,
    byDay ? { dateStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" },
  );
}
