import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { queries, type RunRow } from "../../data/queries.ts";
import { Card } from "../../parts/card.tsx";
import { Empty, Skeleton } from "../../parts/empty.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Meters } from "../../parts/meters.tsx";
import { count, money } from "../../parts/numbers.ts";
import { RunTable } from "../../parts/run-table.tsx";
import { FirstRun } from "../runs/first-run.tsx";
import { NeedsYou } from "./needs-you.tsx";
import { hoursOf, Throughput } from "./throughput.tsx";
import styles from "./page.module.css";

const most = 1000;

export function Page() {
  const since = useMemo(() => new Date(Math.floor(Date.now() / 3_600_000 - 23) * 3_600_000).toISOString(), []);
  const day = useQuery(queries.someRuns({ since }, most));
  const open = useQuery(queries.someRuns({ status: ["claimed", "running", "waiting", "stopping", "pending"] }, 50));
  const parked = useQuery(queries.someRuns({ status: ["parked"] }, 50));
  const questions = useQuery(queries.questions(true));
  const any = useQuery(queries.someRuns({}, 1));
  const fault = day.error ?? open.error ?? parked.error;
  const needs = questions.data?.count ?? 0;
  const busy = open.data ?? [];
  if (any.data?.length === 0)
    return (
      <>
        <h1 className={styles["title"]}>Welcome to Drover</h1>
        <FirstRun filtered={false} />
      </>
    );
  return (
    <>
      <h1 className={styles["title"]}>
        {titleOf(needs, busy.filter(({ status }) => status !== "pending").length, busy.length)}
      </h1>
      {fault ? <ErrorNote error={fault} /> : null}
      <div className={styles["grid"]}>
        <div className="stack">
          <NeedsYou parked={(parked.data ?? []).filter(({ parked_why }) => parked_why !== "approval")} />
          <Card title="Running now" note={count(busy.length)} flush>
            {open.isPending ? (
              <Skeleton rows={3} />
            ) : busy.length > 0 ? (
              <RunTable runs={busy.slice(0, 12)} label="Running now" />
            ) : (
              <Empty icon="runs" title="Nothing runs at the moment">
                <Link to="/agents">Run an agent</Link>
              </Empty>
            )}
          </Card>
        </div>
        <div className="stack">
          {day.data ? <Figures runs={day.data} /> : day.isPending ? <Skeleton rows={8} /> : null}
        </div>
      </div>
    </>
  );
}

function titleOf(needs: number, busy: number, open: number): string {
  if (needs > 0) return needs === 1 ? "1 question waits for you" : `${needs} questions wait for you`;
  if (busy > 0) return busy === 1 ? "1 run is at work" : `${busy} runs are at work`;
  if (open > 0) return open === 1 ? "1 run waits for a runner" : `${open} runs wait for a runner`;
  return "All quiet";
}

/** The last 24 hours in three cards. */
function Figures({ runs }: { runs: readonly RunRow[] }) {
  const ended = runs.filter(({ finished_at }) => finished_at !== null);
  const completed = ended.filter(({ status }) => status === "completed").length;
  const costs = sumBy(
    runs,
    ({ agent_name }) => agent_name,
    ({ usage }) => usage?.cost_usd ?? 0,
  );
  const failures = sumBy(
    runs.filter(({ status }) => status === "failed"),
    ({ reason }) => reason ?? "unknown",
    () => 1,
  );
  const spent = costs.reduce((sum, [, usd]) => sum + usd, 0);
  const share = ended.length === 0 ? null : `${((100 * completed) / ended.length).toFixed(1)} % completed`;
  return (
    <>
      <Card
        title="Last 24 hours"
        note={[runs.length === most ? `newest ${count(most)} runs` : `${count(runs.length)} runs`, share]
          .filter(Boolean)
          .join(" · ")}
      >
        <Throughput hours={hoursOf(runs)} />
      </Card>
      <Card title="Cost by agent" note={`${money(spent)} in 24 hours`}>
        {costs.length === 0 ? (
          <p className="faint">No run reported a cost.</p>
        ) : (
          <Meters
            rows={costs.slice(0, 6).map(([name, usd]) => ({ name, value: usd, shown: money(usd) }))}
            tone="accent"
          />
        )}
      </Card>
      <Card title="Failures by reason" note={failures.length === 0 ? "none in 24 hours" : undefined}>
        {failures.length === 0 ? (
          <p className="faint">Nothing failed.</p>
        ) : (
          <Meters
            rows={failures.slice(0, 6).map(([name, number]) => ({ name, value: number, shown: count(number) }))}
            tone="bad"
          />
        )}
      </Card>
    </>
  );
}

function sumBy<T>(items: readonly T[], keyOf: (item: T) => string, valueOf: (item: T) => number): [string, number][] {
  const sums = new Map<string, number>();
  for (const item of items) sums.set(keyOf(item), (sums.get(keyOf(item)) ?? 0) + valueOf(item));
  return [...sums].filter(([, sum]) => sum > 0).sort(([, one], [, other]) => other - one);
}
