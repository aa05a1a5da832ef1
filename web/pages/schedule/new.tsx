import { useNavigate, useSearch } from "@tanstack/react-router";
import type { SchedulesSearch } from "../schedules/search.ts";
import { ScheduleForm } from "./form.tsx";

export function Page() {
  const navigate = useNavigate();
  // The route validates the search parameters.
  const { agent = "" } = useSearch({ strict: false }) as SchedulesSearch;
  return (
    <>
      <h1 style={{ marginBottom: 12 }}>New schedule</h1>
      <ScheduleForm
        schedule={null}
        agentName={agent}
        onDone={(created) =>
          void navigate(
            created === null
              ? { to: "/schedules" }
              : { to: "/schedules/$scheduleId", params: { scheduleId: created.schedule_id } },
          )
        }
      />
    </>
  );
}
