import { useQuery } from "@tanstack/react-query";
import { queries, type Schedule, type Timing } from "../../data/queries.ts";
import { Card } from "../../parts/card.tsx";
import { Skeleton } from "../../parts/empty.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { useDebounced } from "../../parts/use-debounced.ts";
import { isSameTiming } from "./draft.ts";
import { FireTimes } from "./fire-times.tsx";

/** The next slots of the timing, debounced so that the coordinator does not check every keystroke. */
export function usePreview(timing: Timing | null) {
  const debounced = useDebounced(JSON.stringify(timing));
  // Serialized from a timing just above.
  const judged = JSON.parse(debounced) as Timing | null;
  return { judged, query: useQuery(queries.preview(judged)) };
}

export function Preview({ schedule, judged, query }: { schedule: Schedule | null } & ReturnType<typeof usePreview>) {
  // An unchanged interval keeps counting from its original start.
  const kept = schedule !== null && judged !== null && schedule.enabled && isSameTiming(schedule, judged);
  const slots = kept ? schedule.next : query.data;
  return (
    <Card title="Next five" note="live" flush>
      <div aria-live="polite">
        {judged === null ? (
          <p className="faint" style={{ padding: 14 }}>
            Set a time to preview the next slots here.
          </p>
        ) : slots !== undefined ? (
          <FireTimes slots={slots} timezone={judged.timezone ?? "UTC"} />
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
