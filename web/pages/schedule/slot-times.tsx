import { type Column, Table } from "../../parts/table.tsx";
import { formatInZone, isKnownZone, browserZone, TimeUntil } from "../../parts/time.tsx";

/** Lists the next slots in the schedule's timezone and in the browser's. */
export function SlotTimes({ slots, timezone }: { slots: readonly string[]; timezone: string }) {
  const zone = isKnownZone(timezone) ? timezone : "UTC";
  const columns: Column<string>[] = [
    { head: "Slot", cell: (slot) => <TimeUntil at={slot} /> },
    { head: zone, cell: (slot) => formatInZone(slot, zone) },
  ];
  if (zone !== browserZone)
    columns.push({ head: `${browserZone} (you)`, tone: "dim", cell: (slot) => formatInZone(slot, browserZone) });
  return <Table label="Next slots" columns={columns} rows={slots} getKey={(slot) => slot} />;
}
