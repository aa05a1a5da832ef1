import { type Column, Table } from "../../parts/table.tsx";
import { inZone, isZone, ownZone, Until } from "../../parts/time.tsx";

/** Upcoming slots in the schedule's timezone and in the browser's. */
export function FireTimes({ slots, timezone }: { slots: readonly string[]; timezone: string }) {
  const zone = isZone(timezone) ? timezone : "UTC";
  const columns: Column<string>[] = [
    { head: "Slot", cell: (slot) => <Until at={slot} /> },
    { head: zone, cell: (slot) => inZone(slot, zone) },
  ];
  if (zone !== ownZone) columns.push({ head: `${ownZone} (you)`, tone: "dim", cell: (slot) => inZone(slot, ownZone) });
  return <Table label="Next fire times" columns={columns} rows={slots} keyOf={(slot) => slot} />;
}
