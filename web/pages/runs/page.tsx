import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { useKeys } from "../../app/shortcuts.ts";
import { api } from "../../data/client.ts";
import { getNoRetryReason } from "../../data/no-retry-reason.ts";
import { queries, queryClient, type RunRow } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { formatCount } from "../../parts/numbers.ts";
import { RunTable } from "../../parts/run-table.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import { hasEnded } from "../../../src/model/states.ts";
import { Filters } from "./filters.tsx";
import { NoRuns } from "./no-runs.tsx";
import { hasFilter, type RunsSearch, toFilter } from "./search.ts";

export function Page() {
  // The route validates the search parameters.
  const search = useSearch({ strict: false }) as RunsSearch;
  const filter = useMemo(() => toFilter(search), [search]);
  const query = useInfiniteQuery(queries.runs(filter));
  const allRuns = useMemo(() => (query.data?.pages ?? []).flatMap(({ items }) => items), [query.data]);
  const { visibleRuns, newCount, showNew } = useSteadyList(allRuns, JSON.stringify(filter));
  const [currentIndex, setCurrentIndex] = useState<number | null>(null);
  const [selectedIds, setSelectedIds] = useState<ReadonlySet<string>>(new Set());
  const navigate = useNavigate();
  const agents = useQuery(queries.agents());
  const toggle = (run_id: string): void =>
    setSelectedIds((previous) => {
      const next = new Set(previous);
      if (!next.delete(run_id)) next.add(run_id);
      return next;
    });
  const move = (by: number): void =>
    setCurrentIndex((previous) => Math.max(0, Math.min(visibleRuns.length - 1, previous === null ? 0 : previous + by)));
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    x: () => currentIndex !== null && visibleRuns[currentIndex] && toggle(visibleRuns[currentIndex].run_id),
    Enter: () =>
      currentIndex !== null &&
      visibleRuns[currentIndex] &&
      void navigate({ to: "/runs/$runId", params: { runId: visibleRuns[currentIndex].run_id } }),
  });
  useLoadMore(query.hasNextPage && !query.isFetchingNextPage, () => void query.fetchNextPage());
  const selectedRuns = visibleRuns.filter(({ run_id }) => selectedIds.has(run_id));
  return (
    <>
      <div className="row wrap" style={{ marginBottom: 12 }}>
        <h1 style={{ marginRight: 12 }}>Runs</h1>
        <Filters search={search} agents={agents.data ?? []} />
        <span className="row push">
          <span role="status" aria-live="polite">
            {newCount > 0 ? (
              <Button onClick={showNew}>{newCount === 1 ? "Show 1 new run" : `Show ${newCount} new runs`}</Button>
            ) : null}
          </span>
          <Button variant="primary" icon="runs" onClick={() => void navigate({ to: "/agents" })}>
            Run an agent
          </Button>
        </span>
      </div>
      {selectedRuns.length > 0 ? <BulkActions rows={selectedRuns} clear={() => setSelectedIds(new Set())} /> : null}
      {query.data?.pages[0]?.indexing ? (
        <p className="dim" role="status" style={{ marginBottom: 8 }}>
          Older runs are still being indexed, so some may be missing from this list.
        </p>
      ) : null}
      {query.isError ? <ErrorNote error={query.error} /> : null}
      {query.isPending ? (
        <Card flush>
          <Skeleton rows={10} />
        </Card>
      ) : visibleRuns.length > 0 ? (
        <Card flush>
          <RunTable
            runs={visibleRuns}
            label="Runs"
            selection={{ selectedIds, toggle }}
            currentIndex={currentIndex}
            searchText={filter.search}
          />
        </Card>
      ) : query.isError ? null : (
        <NoRuns hasFilter={hasFilter(search)} />
      )}
      {visibleRuns.length > 0 ? (
        <p className="faint" style={{ marginTop: 8 }}>
          {formatCount(visibleRuns.length)}
          {query.hasNextPage ? " runs loaded; scroll to load more" : visibleRuns.length === 1 ? " run" : " runs"} ·{" "}
          <kbd>j</kbd> <kbd>k</kbd> move · <kbd>Enter</kbd> open · <kbd>x</kbd> select
        </p>
      ) : null}
    </>
  );
}

/** Updates rows in place but adds new ones only on request, so that rows do not move under the pointer. */
function useSteadyList(allRuns: readonly RunRow[], key: string) {
  const [shownState, setShownState] = useState<{ key: string; newest: string } | null>(null);
  const newest = allRuns[0]?.run_id ?? "";
  useEffect(() => {
    if (allRuns.length > 0 && shownState?.key !== key) setShownState({ key, newest });
  }, [allRuns.length, key, newest, shownState]);
  // Run ids sort by time.
  const limit = shownState?.key === key ? shownState.newest : newest;
  const visibleRuns = useMemo(() => allRuns.filter(({ run_id }) => run_id <= limit), [allRuns, limit]);
  return { visibleRuns, newCount: allRuns.length - visibleRuns.length, showNew: () => setShownState({ key, newest }) };
}

function useLoadMore(hasMore: boolean, load: () => void): void {
  useEffect(() => {
    if (!hasMore) return;
    const loadIfNearEnd = (): void => {
      if (window.innerHeight + window.scrollY > document.documentElement.scrollHeight - 800) load();
    };
    loadIfNearEnd();
    addEventListener("scroll", loadIfNearEnd, { passive: true });
    return () => removeEventListener("scroll", loadIfNearEnd);
  });
}

function BulkActions({ rows, clear }: { rows: readonly RunRow[]; clear: () => void }) {
  const activeRuns = rows.filter(({ status }) => !hasEnded(status));
  const agents = useQuery(queries.agents()).data ?? [];
  const endedRuns = rows.filter(({ status }) => hasEnded(status));
  const retryableRuns = endedRuns.filter(
    (run) =>
      getNoRetryReason(
        run,
        agents.find(({ name }) => name === run.agent_name),
      ) === null,
  );
  const applyToAll = async (
    pastTense: string,
    runs: readonly RunRow[],
    action: (run_id: string) => Promise<unknown>,
  ): Promise<void> => {
    const results = await Promise.allSettled(runs.map(({ run_id }) => action(run_id)));
    const failure = results.find((result) => result.status === "rejected");
    if (failure) toastError(failure.reason);
    const succeeded = results.filter(({ status }) => status === "fulfilled").length;
    if (succeeded > 0) toast(`${pastTense} ${succeeded === 1 ? "1 run" : `${succeeded} runs`}`);
    clear();
    await queryClient.invalidateQueries({ queryKey: ["runs"] });
  };
  return (
    <div className="row" style={{ marginBottom: 12 }}>
      <span>{rows.length} selected</span>
      <Button
        variant="danger"
        icon="stop"
        disabledReason={activeRuns.length === 0 ? "All selected runs have finished" : null}
        onClick={() => void applyToAll("Stopped", activeRuns, (run_id) => api.runs.stop(run_id))}
      >
        Stop {activeRuns.length > 0 ? activeRuns.length : ""}
      </Button>
      <Button
        icon="retry"
        disabledReason={
          endedRuns.length === 0
            ? "None of the selected runs has finished"
            : retryableRuns.length === 0
              ? "None of the selected runs has an agent to run again"
              : null
        }
        onClick={() => void applyToAll("Retried", retryableRuns, (run_id) => api.runs.retry(run_id))}
      >
        Retry {retryableRuns.length > 0 ? retryableRuns.length : ""}
      </Button>
      <Button variant="quiet" onClick={clear}>
        Clear
      </Button>
    </div>
  );
}
