import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { queries, type Schedule, type Slot } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command } from "../../parts/command.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { formatShortId } from "../../parts/numbers.ts";
import { SlotState, describeSlotReason } from "../../parts/slot.tsx";
import { type Column, Table, tableLink } from "../../parts/table.tsx";
import { Age, formatInZone } from "../../parts/time.tsx";
import { revealDirectionMarks } from "../../parts/reveal-direction-marks.ts";

/** Each slot with its run, or with the reason why it has none. */
export function History({ schedule }: { schedule: Schedule }) {
  const query = useInfiniteQuery(queries.slots(schedule.schedule_id));
  const slots = (query.data?.pages ?? []).flatMap(({ items }) => items);
  return (
    <>
      {query.isError ? <ErrorNote error={query.error} /> : null}
      <Card title="History" note="every slot, newest first" flush>
        {query.isPending ? (
          <Skeleton />
        ) : slots.length === 0 ? (
          <EmptyState icon="schedules" title="No slot has been due yet">
            <p>Run the schedule now:</p>
            <Command text={`drover schedules run ${schedule.name}`} />
          </EmptyState>
        ) : (
          <Table label="History" columns={buildColumns(schedule.timezone)} rows={slots} getKey={({ slot }) => slot} />
        )}
      </Card>
      {query.hasNextPage ? (
        <p style={{ marginTop: 8 }}>
          <Button onClick={() => void query.fetchNextPage()}>Show older</Button>
        </p>
      ) : null}
    </>
  );
}

const buildColumns = (timezone: string): Column<Slot>[] => [
  { head: "Outcome", cell: (slot) => <SlotState slot={slot} /> },
  { head: "Slot", cell: ({ slot }) => formatInZone(slot, timezone) },
  {
    head: "Run",
    cell: ({ run_id }) =>
      run_id === null ? (
        <span className="faint">none</span>
      ) : (
        <Link className={tableLink} to="/runs/$runId" params={{ runId: run_id }}>
          <span className="mono">{formatShortId(run_id)}</span>
        </Link>
      ),
  },
  { head: "Trigger", tone: "dim", cell: ({ manual }) => (manual ? "manual" : "schedule") },
  {
    head: "Reason",
    tone: "dim",
    title: (slot) => revealDirectionMarks(describeSlotReason(slot)),
    cell: (slot) => revealDirectionMarks(describeSlotReason(slot)) || "—",
  },
  { head: "Decided", right: true, tone: "faint", cell: ({ at }) => <Age at={at} suffix=" ago" /> },
];
