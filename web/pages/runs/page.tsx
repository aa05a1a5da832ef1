import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { useKeys } from "../../app/shortcuts.ts";
import { api } from "../../data/client.ts";
import { queries, queryClient, type RunRow } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Skeleton } from "../../parts/empty.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { count } from "../../parts/numbers.ts";
import { RunTable } from "../../parts/run-table.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import { isTerminal } from "../../../src/model/states.ts";
import { Filters } from "./filters.tsx";
import { FirstRun } from "./first-run.tsx";
import { hasFilter, type RunsSearch, toFilter } from "./search.ts";

export function Page() {
  // The route validates the search parameters.
  const search = useSearch({ strict: false }) as RunsSearch;
  const filter = useMemo(() => toFilter(search), [search]);
  const query = useInfiniteQuery(queries.runs(filter));
  const all = useMemo(() => (query.data?.pages ?? []).flatMap(({ items }) => items), [query.data]);
  const { shown, fresh, showFresh } = useSteadyList(all, JSON.stringify(filter));
  const [at, setAt] = useState<number | null>(null);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const navigate = useNavigate();
  const agents = useQuery(queries.agents());
  const toggle = (run_id: string): void =>
    setChosen((before) => {
      const next = new Set(before);
      if (!next.delete(run_id)) next.add(run_id);
      return next;
    });
  const move = (by: number): void =>
    setAt((before) => Math.max(0, Math.min(shown.length - 1, before === null ? 0 : before + by)));
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    x: () => at !== null && shown[at] && toggle(shown[at].run_id),
    Enter: () => at !== null && shown[at] && void navigate({ to: "/runs/$runId", params: { runId: shown[at].run_id } }),
  });
  useLoadMore(query.hasNextPage && !query.isFetchingNextPage, () => void query.fetchNextPage());
  const rows = shown.filter(({ run_id }) => chosen.has(run_id));
  return (
    <>
      <div className="row wrap" style={{ marginBottom: 12 }}>
        <h1 style={{ marginRight: 12 }}>Runs</h1>
        <Filters search={search} agents={agents.data ?? []} />
        <span className="row push">
          <span role="status" aria-live="polite">
            {fresh > 0 ? <Button onClick={showFresh}>{fresh} new</Button> : null}
          </span>
          <Button look="primary" icon="runs" onClick={() => void navigate({ to: "/agents" })}>
            Run an agent
          </Button>
        </span>
      </div>
      {rows.length > 0 ? <Bulk rows={rows} clear={() => setChosen(new Set())} /> : null}
      {query.data?.pages[0]?.indexing ? (
        <p className="dim" role="status" style={{ marginBottom: 8 }}>
          Older runs are still being indexed: some may be missing here for a while.
        </p>
      ) : null}
      {query.isError ? <ErrorNote error={query.error} /> : null}
      {query.isPending ? (
        <Card flush>
          <Skeleton rows={10} />
        </Card>
      ) : shown.length > 0 ? (
        <Card flush>
          <RunTable runs={shown} label="Runs" selection={{ chosen, toggle }} at={at} found={filter.search} />
        </Card>
      ) : query.isError ? null : (
        <FirstRun filtered={hasFilter(search)} />
      )}
      {shown.length > 0 ? (
        <p className="faint" style={{ marginTop: 8 }}>
          {count(shown.length)}
          {query.hasNextPage ? " so far, more as you scroll" : shown.length === 1 ? " run" : " runs"} · <kbd>j</kbd>{" "}
          <kbd>k</kbd> move · <kbd>Enter</kbd> open · <kbd>x</kbd> select
        </p>
      ) : null}
    </>
  );
}

/** Updates rows in place but adds new ones only on request, so that rows do not move under the pointer. */
function useSteadyList(all: readonly RunRow[], key: string) {
  const [seen, setSeen] = useState<{ key: string; newest: string } | null>(null);
  const newest = all[0]?.run_id ?? "";
  useEffect(() => {
    if (all.length > 0 && seen?.key !== key) setSeen({ key, newest });
  }, [all.length, key, newest, seen]);
  // Run ids sort by time.
  const limit = seen?.key === key ? seen.newest : newest;
  const shown = useMemo(() => all.filter(({ run_id }) => run_id <= limit), [all, limit]);
  return { shown, fresh: all.length - shown.length, showFresh: () => setSeen({ key, newest }) };
}

function useLoadMore(possible: boolean, load: () => void): void {
  useEffect(() => {
    if (!possible) return;
    const loadIfNearEnd = (): void => {
      if (window.innerHeight + window.scrollY > document.documentElement.scrollHeight - 800) load();
    };
    loadIfNearEnd();
    addEventListener("scroll", loadIfNearEnd, { passive: true });
    return () => removeEventListener("scroll", loadIfNearEnd);
  });
}

function Bulk({ rows, clear }: { rows: readonly RunRow[]; clear: () => void }) {
  const open = rows.filter(({ status }) => !isTerminal(status));
  const ended = rows.filter(({ status }) => isTerminal(status));
  const each = async (
    what: string,
    runs: readonly RunRow[],
    act: (run_id: string) => Promise<unknown>,
  ): Promise<void> => {
    const results = await Promise.allSettled(runs.map(({ run_id }) => act(run_id)));
    const failed = results.find((result) => result.status === "rejected");
    if (failed) toastError(failed.reason);
    const done = results.filter(({ status }) => status === "fulfilled").length;
    if (done > 0) toast(`${what} ${done === 1 ? "1 run" : `${done} runs`}`);
    clear();
    await queryClient.invalidateQueries({ queryKey: ["runs"] });
  };
  return (
    <div className="row" style={{ marginBottom: 12 }}>
      <span>{rows.length} selected</span>
      <Button
        look="bad"
        icon="stop"
        disabledBecause={open.length === 0 ? "All selected runs have finished" : null}
        onClick={() => void each("Stopped", open, (run_id) => api.runs.stop(run_id))}
      >
        Stop {open.length > 0 ? open.length : ""}
      </Button>
      <Button
        icon="again"
        disabledBecause={ended.length === 0 ? "None of the selected runs has finished" : null}
        onClick={() => void each("Re-ran", ended, (run_id) => api.runs.retry(run_id))}
      >
        Re-run {ended.length > 0 ? ended.length : ""}
      </Button>
      <Button look="quiet" onClick={clear}>
        Clear
      </Button>
    </div>
  );
}
