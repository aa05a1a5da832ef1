import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { queries, type Schedule } from "../../data/queries.ts";
import { useReadOnlyReason } from "../../data/read-only-reason.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Chip, Chips } from "../../parts/chip.tsx";
import { Command } from "../../parts/command.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Menu } from "../../parts/menu.tsx";
import { formatCount } from "../../parts/numbers.ts";
import { ScheduleTable } from "../../parts/schedule-table.tsx";
import { isFailing } from "../../parts/slot.tsx";
import type { SchedulesSearch } from "./search.ts";

export function Page() {
  // The route validates the search parameters.
  const search = useSearch({ strict: false }) as SchedulesSearch;
  const { agent, only } = search;
  const query = useInfiniteQuery(queries.schedules(agent));
  const readOnlyReason = useReadOnlyReason();
  const navigate = useNavigate();
  const all = (query.data?.pages ?? []).flatMap(({ items }) => items).sort(compareNextSlots);
  const failing = all.filter(isFailing);
  const visibleSchedules = only === "failing" ? failing : all;
  return (
    <>
      <div className="row wrap" style={{ marginBottom: 12 }}>
        <h1 style={{ marginRight: 12 }}>Schedules</h1>
        <Filters {...search} failing={failing.length} />
        <span className="push">
          <Button
            variant="primary"
            icon="plus"
            disabledReason={readOnlyReason}
            onClick={() => void navigate({ to: "/schedules/new", search: agent === undefined ? {} : { agent } })}
          >
            New schedule
          </Button>
        </span>
      </div>
      {query.isError ? <ErrorNote error={query.error} /> : null}
      <Card flush>
        {query.isPending ? (
          <Skeleton />
        ) : visibleSchedules.length > 0 ? (
          <ScheduleTable schedules={visibleSchedules} label="Schedules" readOnlyReason={readOnlyReason} />
        ) : query.isError ? null : agent === undefined && only === undefined ? (
          <NoSchedules />
        ) : (
          <EmptyState icon="search" title={only === "failing" ? "No schedule is failing" : "No schedule matches"}>
            <Link to="/schedules">Show all schedules</Link>
          </EmptyState>
        )}
      </Card>
      {visibleSchedules.length > 0 ? (
        <p className="faint" style={{ marginTop: 8 }}>
          {formatCount(visibleSchedules.length)} {visibleSchedules.length === 1 ? "schedule" : "schedules"}
          {query.hasNextPage ? " loaded " : null}
          {query.hasNextPage ? <Button onClick={() => void query.fetchNextPage()}>Show more</Button> : null}
        </p>
      ) : null}
    </>
  );
}

function Filters({ agent, only, failing }: SchedulesSearch & { failing: number }) {
  const agents = useQuery(queries.agents());
  const navigate = useNavigate();
  const names = [...new Set((agents.data ?? []).map(({ name }) => name))].sort();
  const set = (next: SchedulesSearch): void => void navigate({ to: "/schedules", search: next, replace: true });
  const otherFilters = only === undefined ? {} : { only };
  return (
    <Chips>
      <Menu
        trigger={<Chip label="Agent" value={agent ?? "any"} />}
        entries={[
          { text: "Any", onSelect: () => set(otherFilters) },
          ...names.map((name) => ({ text: name, onSelect: () => set({ ...otherFilters, agent: name }) })),
        ]}
      />
      <Menu
        trigger={
          <Chip label="Show" value={only === "failing" ? "failing" : failing > 0 ? `all, ${failing} failing` : "all"} />
        }
        entries={[
          { text: "All", onSelect: () => set(agent === undefined ? {} : { agent }) },
          { text: "Failing", onSelect: () => set({ ...(agent === undefined ? {} : { agent }), only: "failing" }) },
        ]}
      />
    </Chips>
  );
}

function NoSchedules() {
  const file = `schedules:
  - name: nightly
    cron: "0 3 * * *"
    timezone: ${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
  return (
    <EmptyState icon="schedules" title="No schedules yet">
      <p>Run an agent every night at 3:00 in your timezone:</p>
      <Command text={'drover schedules add disk-usage nightly --cron "0 3 * * *"'} />
      <p>Or write it into the agent&apos;s file:</p>
      <Command text={file} label="Copy the lines" />
    </EmptyState>
  );
}

/** Orders schedules by their next slot. Schedules without one come last. */
function compareNextSlots(a: Schedule, b: Schedule): number {
  const getNextSlot = ({ next }: Schedule): string => next[0] ?? "9";
  return getNextSlot(a).localeCompare(getNextSlot(b)) || a.name.localeCompare(b.name);
}
