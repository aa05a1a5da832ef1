import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { queries, type Stats } from "../../data/queries.ts";
import { Card } from "../../parts/card.tsx";
import { Empty, Skeleton } from "../../parts/empty.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { count } from "../../parts/numbers.ts";
import { RunTable } from "../../parts/run-table.tsx";
import { FirstRun } from "../runs/first-run.tsx";
import { Figures } from "./figures.tsx";
import { NeedsYou } from "./needs-you.tsx";
import { Runners } from "./runners.tsx";
import { type OverviewSearch, spans } from "./search.ts";
import { Waiting } from "./waiting.tsx";
import styles from "./page.module.css";

export function Page() {
  // The route validates the search parameters.
  const { last = 24 } = useSearch({ strict: false }) as OverviewSearch;
  const stats = useQuery(queries.stats(last));
  const open = useQuery(queries.someRuns({ status: ["claimed", "running", "waiting", "stopping", "pending"] }, 50));
  const parked = useQuery(queries.someRuns({ status: ["parked"] }, 50));
  const questions = useQuery(queries.questions(true));
  const any = useQuery(queries.someRuns({}, 1));
  const runners = useQuery(queries.runners());
  const fault = stats.error ?? open.error ?? parked.error;
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
      <div className={`row wrap ${styles["title"]}`}>
        <h1>{titleOf(needs, busy.filter(({ status }) => status !== "pending").length, busy.length)}</h1>
        <nav className={styles["spans"]} aria-label="Time range">
          {spans.map(({ hours, word }) => (
            <Link
              key={hours}
              to="/"
              search={hours === 24 ? {} : { last: hours }}
              replace
              aria-current={hours === last ? "true" : undefined}
            >
              {word}
            </Link>
          ))}
        </nav>
      </div>
      {fault ? <ErrorNote error={fault} /> : null}
      <div className={styles["grid"]}>
        <div className="stack">
          <NeedsYou parked={(parked.data ?? []).filter(({ parked_why }) => parked_why !== "approval")} />
          <Card title="Now" note={stats.data ? nowOf(stats.data.now) : undefined} flush>
            {open.isPending ? (
              <Skeleton rows={3} />
            ) : busy.length > 0 ? (
              <RunTable runs={busy.slice(0, 12)} label="Open runs" />
            ) : (
              <Empty icon="runs" title="Nothing is running">
                <Link to="/agents">Run an agent</Link>
              </Empty>
            )}
          </Card>
          {stats.data ? <Waiting stats={stats.data} /> : null}
        </div>
        <div className="stack">
          {stats.data ? (
            <Figures stats={stats.data} span={spans.find(({ hours }) => hours === last)!.word} />
          ) : stats.isPending ? (
            <Card flush>
              <Skeleton rows={8} />
            </Card>
          ) : null}
          {runners.data ? <Runners runners={runners.data} /> : null}
        </div>
      </div>
    </>
  );
}

function nowOf(now: Stats["now"]): string {
  const parts = (["running", "waiting", "pending", "parked"] as const)
    .filter((key) => now[key] > 0)
    .map((key) => `${count(now[key])} ${key}`);
  return parts.join(" · ");
}

function titleOf(needs: number, busy: number, open: number): string {
  if (needs > 0) return needs === 1 ? "1 question is waiting for you" : `${needs} questions are waiting for you`;
  if (busy > 0) return busy === 1 ? "1 run is active" : `${busy} runs are active`;
  if (open > 0) return open === 1 ? "1 run is waiting for a runner" : `${open} runs are waiting for a runner`;
  return "All quiet";
}
