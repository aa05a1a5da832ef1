import { useQuery } from "@tanstack/react-query";
import { queries, type Schedule, type Timing } from "../../data/queries.ts";
import { Card } from "../../parts/card.tsx";
import { Skeleton } from "../../parts/empty.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { useSettled } from "../../parts/use-settled.ts";
import { isSameTiming } from "./draft.ts";
import { FireTimes } from "./fire-times.tsx";

/** As it is once somebody has paused, so that not every letter is judged. */
export function usePreview(timing: Timing | null) {
  const settled = useSettled(JSON.stringify(timing));
  // it was written from one just above
  const judged = JSON.parse(settled) as Timing | null;
  return { judged, query: useQuery(queries.preview(judged)) };
}

export function Preview({ schedule, judged, query }: { schedule: Schedule | null } & ReturnType<typeof usePreview>) {
  // an interval that stays as it is keeps counting from where it began
  const kept = schedule !== null && judged !== null && schedule.enabled && isSameTiming(schedule, judged);
  const slots = kept ? schedule.next : query.data;
  return (
    <Card title="Next five" note="live" flush>
      <div aria-live="polite">
        {judged === null ? (
          <p className="faint" style={{ padding: 14 }}>
            Say when, and see its next slots here.
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
