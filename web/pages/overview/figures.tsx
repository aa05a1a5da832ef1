import type { Stats } from "../../data/queries.ts";
import { type Bar, Bars } from "../../parts/bars.tsx";
import { Card } from "../../parts/card.tsx";
import { Meters } from "../../parts/meters.tsx";
import { count, money } from "../../parts/numbers.ts";

/** Throughput, cost and failures over the selected time range. */
export function Figures({ stats, span }: { stats: Stats; span: string }) {
  return (
    <>
      <Throughput stats={stats} span={span} />
      <Cost stats={stats} />
      <Failures stats={stats} />
    </>
  );
}

function Throughput({ stats, span }: { stats: Stats; span: string }) {
  const ended = stats.throughput;
  const completed = sum(ended, ({ completed: some }) => some);
  const share =
    stats.runs_finished === 0 ? null : `${((100 * completed) / stats.runs_finished).toFixed(1)} % completed`;
  const byDay = stats.bucket_seconds >= 86_400;
  const bars = ended.map((bucket): Bar => ({
    key: bucket.at,
    title: `${whenOf(bucket.at, byDay)} · ${bucket.completed} completed, ${bucket.failed} failed, ${bucket.cancelled} cancelled`,
    parts: [
      { tone: "accent", value: bucket.completed },
      { tone: "idle", value: bucket.cancelled },
      { tone: "bad", value: bucket.failed },
    ],
  }));
  const words = (["completed", "failed", "cancelled"] as const).map((key) => `${sum(ended, (one) => one[key])} ${key}`);
  return (
    <Card
      title={`Last ${span}`}
      note={[`${count(stats.runs_finished)} ${stats.runs_finished === 1 ? "run" : "runs"}`, share]
        .filter(Boolean)
        .join(" · ")}
    >
      <Bars
        bars={bars}
        label={`Finished runs: ${words.join(", ")}`}
        from={whenOf(stats.since, byDay)}
        to="now"
        most={(value) => (value >= 1 ? count(value) : "")}
      />
    </Card>
  );
}

function Cost({ stats: { cost } }: { stats: Stats }) {
  const spent = sum(cost, ({ cost_usd }) => cost_usd ?? 0);
  const tokens = sum(cost, tokensOf);
  // A local model uses tokens but costs no money.
  const unit = spent > 0 ? moneyUnit : tokenUnit;
  const agents = groupBy(cost, ({ agent_name }) => agent_name, unit.valueOf).toSorted(([, a], [, b]) => b - a);
  const days = groupBy(cost, ({ day }) => day, unit.valueOf).toSorted(([a], [b]) => a.localeCompare(b));
  return (
    <Card
      title="Cost by agent"
      note={[spent > 0 ? money(spent) : null, tokens > 0 ? `${count(tokens)} tokens` : null]
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
            shown: unit.show(value),
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
              title: [`${day} · ${unit.show(value)}`, ...agentsOf(cost, day, unit)].join("\n"),
              parts: [{ tone: "accent", value }],
            }))}
            label={`Cost by day: ${days.map(([day, value]) => `${day} ${unit.show(value)}`).join(", ")}`}
            from={days[0]![0]}
            to={days.at(-1)![0]}
            most={unit.show}
          />
        </div>
      ) : null}
    </Card>
  );
}

type CostRow = Stats["cost"][number];

interface Unit {
  valueOf: (row: CostRow) => number;
  show: (value: number) => string;
}

const moneyUnit: Unit = { valueOf: ({ cost_usd }) => cost_usd ?? 0, show: money };
const tokenUnit: Unit = { valueOf: tokensOf, show: (value) => count(Math.round(value)) };

function tokensOf({ input_tokens, output_tokens }: CostRow): number {
  return input_tokens + output_tokens;
}

function agentsOf(cost: readonly CostRow[], day: string, unit: Unit): string[] {
  return cost.filter((row) => row.day === day).map((row) => `${row.agent_name} ${unit.show(unit.valueOf(row))}`);
}

function Failures({ stats: { failures } }: { stats: Stats }) {
  const all = sum(failures, ({ count: number }) => number);
  return (
    <Card title="Failures by reason" note={all === 0 ? undefined : count(all)}>
      {failures.length === 0 ? (
        <p className="faint">Nothing failed.</p>
      ) : (
        <Meters
          rows={failures.slice(0, 6).map(({ reason, count: number }) => ({
            name: reason,
            value: number,
            shown: count(number),
            link: { to: "/runs", search: { status: ["failed"] } },
          }))}
          tone="bad"
        />
      )}
    </Card>
  );
}

function sum<T>(items: readonly T[], valueOf: (item: T) => number): number {
  return items.reduce((total, item) => total + valueOf(item), 0);
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string, valueOf: (item: T) => number): [string, number][] {
  const sums = new Map<string, number>();
  for (const item of items) sums.set(keyOf(item), (sums.get(keyOf(item)) ?? 0) + valueOf(item));
  return [...sums].filter(([, value]) => value > 0);
}

function whenOf(at: string, byDay: boolean): string {
  return new Date(at).toLocaleString(
    undefined,
    byDay ? { dateStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" },
  );
}
