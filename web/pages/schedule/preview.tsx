import { useQuery } from "@tanstack/react-query";
import { queries, type Schedule, type Timing } from "../../data/queries.ts";
import { Card } from "../../parts/card.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { useDebounced } from "../../parts/use-debounced.ts";
import { isSameTiming } from "./draft.ts";
import { SlotTimes } from "./slot-times.tsx";

/** The next slots of the timing, debounced so that the coordinator does not get a request per keystroke. */
export function usePreview(input: Timing | null) {
  const debounced = useDebounced(JSON.stringify(input));
  // The line above serialized a timing.
  const timing = JSON.parse(debounced) as Timing | null;
  return { timing, query: useQuery(queries.preview(timing)) };
}

export function Preview({ schedule, timing, query }: { schedule: Schedule | null } & ReturnType<typeof usePreview>) {
  // An unchanged interval keeps counting from its original start.
  const isUnchanged = schedule !== null && timing !== null && schedule.enabled && isSameTiming(schedule, timing);
  const slots = isUnchanged ? schedule.next : query.data;
  return (
    <Card title="Next five slots" note="live" flush>
      <div aria-live="polite">
        {timing === null ? (
          <p className="faint" style={{ padding: 14 }}>
            Set a time to preview the next slots here.
          </p>
        ) : slots !== undefined ? (
          <SlotTimes slots={slots} timezone={timing.timezone ?? "UTC"} />
        ) : query.isError ? (
          <div style={{ padding: "14px 14px 2px" }}>
            <ErrorNote error={query.error} />
          </div>
        ) : (
          <Skeleton rows={5} />
        )}
      </div>
    </Card>
  );
}
