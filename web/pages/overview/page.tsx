import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { statusSets } from "../../../src/model/states.ts";
import { queries, type Stats } from "../../data/queries.ts";
import { Card } from "../../parts/card.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { formatCount } from "../../parts/numbers.ts";
import { RunTable } from "../../parts/run-table.tsx";
import { NoRuns } from "../runs/no-runs.tsx";
import { Figures } from "./figures.tsx";
import { NeedsYou } from "./needs-you.tsx";
import { Runners } from "./runners.tsx";
import { type OverviewSearch, timeRanges } from "./search.ts";
import { WaitReasons } from "./wait-reasons.tsx";
import styles from "./page.module.css";

export function Page() {
  // The route validates the search parameters.
  const { last = 24 } = useSearch({ strict: false }) as OverviewSearch;
  const stats = useQuery(queries.stats(last));
  const open = useQuery(queries.recentRuns({ status: statusSets.open.filter((status) => status !== "parked") }, 50));
  const parked = useQuery(queries.recentRuns({ status: ["parked"] }, 50));
  const questions = useQuery(queries.questions(true));
  const anyRun = useQuery(queries.recentRuns({}, 1));
  const runners = useQuery(queries.runners());
  const error = stats.error ?? open.error ?? parked.error;
  const questionCount = questions.data?.count ?? 0;
  const openRuns = open.data ?? [];
  if (anyRun.data?.length === 0)
    return (
      <>
        <h1 className={styles["title"]}>Welcome to Drover</h1>
        <NoRuns hasFilter={false} />
      </>
    );
  return (
    <>
      <div className={`row wrap ${styles["title"]}`}>
        <h1>
          {describeState(questionCount, openRuns.filter(({ status }) => status !== "pending").length, openRuns.length)}
        </h1>
        <nav className={styles["time-ranges"]} aria-label="Time range">
          {timeRanges.map(({ hours, label }) => (
            <Link
              key={hours}
              to="/"
              search={hours === 24 ? {} : { last: hours }}
              replace
              aria-current={hours === last ? "true" : undefined}
            >
              {label}
            </Link>
          ))}
        </nav>
      </div>
      {error ? <ErrorNote error={error} /> : null}
      <div className={styles["grid"]}>
        <div className="stack">
          <NeedsYou parked={(parked.data ?? []).filter(({ parked_why }) => parked_why !== "approval")} />
          <Card title="Now" note={stats.data ? describeNow(stats.data.now) : undefined} flush>
            {open.isPending ? (
              <Skeleton rows={3} />
            ) : openRuns.length > 0 ? (
              <RunTable runs={openRuns.slice(0, 12)} label="Open runs" />
            ) : (
              <EmptyState icon="runs" title="Nothing is running">
                <Link to="/agents">Run an agent</Link>
              </EmptyState>
            )}
          </Card>
          {stats.data ? <WaitReasons stats={stats.data} /> : null}
        </div>
        <div className="stack">
          {stats.data ? (
            <Figures stats={stats.data} timeRange={timeRanges.find(({ hours }) => hours === last)!.label} />
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

function describeNow(now: Stats["now"]): string {
  const parts = (["running", "waiting", "pending", "parked"] as const)
    .filter((key) => now[key] > 0)
    .map((key) => `${formatCount(now[key])} ${key}`);
  return parts.join(" · ");
}

function describeState(questions: number, active: number, open: number): string {
  if (questions > 0)
    return questions === 1 ? "1 question is waiting for you" : `${questions} questions are waiting for you`;
  if (active > 0) return active === 1 ? "1 run is active" : `${active} runs are active`;
  if (open > 0) return open === 1 ? "1 run is waiting for a runner" : `${open} runs are waiting for a runner`;
  return "All quiet";
}
