import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { api } from "../../data/client.ts";
import { useReadOnlyReason } from "../../data/read-only-reason.ts";
import { queries, type Schedule } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Code } from "../../parts/code.tsx";
import { CopyButton } from "../../parts/command.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Facts } from "../../parts/facts.tsx";
import { JsonTree } from "../../parts/json-tree.tsx";
import { formatShortId } from "../../parts/numbers.ts";
import { setEnabled, refreshSchedules, runNow, ScheduleTiming } from "../../parts/schedule-table.tsx";
import { isFailing, SlotState } from "../../parts/slot.tsx";
import { StatusMark } from "../../parts/status.tsx";
import { tableLink } from "../../parts/table.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import { SlotTimes } from "./slot-times.tsx";
import { ScheduleForm } from "./form.tsx";
import { History } from "./history.tsx";
import { DefinitionNote, FailureWarning } from "./notes.tsx";
import styles from "./page.module.css";

export function Page() {
  const { scheduleId = "" } = useParams({ strict: false });
  const query = useQuery(queries.schedule(scheduleId));
  const schedule = query.data;
  useEffect(() => {
    if (schedule) document.title = `${schedule.name} · ${schedule.agent_name} · Drover`;
    return () => void (document.title = "Drover");
  }, [schedule?.name, schedule?.agent_name]);
  if (schedule !== undefined)
    return (
      <>
        {query.isError ? <ErrorNote error={query.error} /> : null}
        <SchedulePage key={scheduleId} schedule={schedule} />
      </>
    );
  if (!query.isError) return <Skeleton rows={8} />;
  return (
    <div className="stack">
      <h1>Schedule</h1>
      <ErrorNote error={query.error} />
      <p>
        <Link className={tableLink} to="/schedules">
          Show all schedules
        </Link>
      </p>
    </div>
  );
}

function SchedulePage({ schedule }: { schedule: Schedule }) {
  const [isEditing, setIsEditing] = useState(false);
  return (
    <>
      <Head schedule={schedule} onEdit={() => setIsEditing(true)} />
      <DefinitionNote schedule={schedule} />
      {isFailing(schedule) ? <FailureWarning schedule={schedule} /> : null}
      {isEditing ? (
        <ScheduleForm schedule={schedule} onDone={() => setIsEditing(false)} />
      ) : (
        <div className={styles["panes"]}>
          <Card title="Next five slots" flush>
            {schedule.next.length > 0 ? (
              <SlotTimes slots={schedule.next} timezone={schedule.timezone} />
            ) : (
              <p className="faint" style={{ padding: 14 }}>
                {schedule.enabled ? "No more slots." : "Disabled: its slots are skipped until it is enabled."}
              </p>
            )}
          </Card>
          <Definition schedule={schedule} />
        </div>
      )}
      <div style={{ marginTop: 16 }}>
        <History schedule={schedule} />
      </div>
    </>
  );
}

function Head({ schedule, onEdit }: { schedule: Schedule; onEdit: () => void }) {
  const navigate = useNavigate();
  const readOnlyReason = useReadOnlyReason();
  const { schedule_id, name, agent_name, enabled, source, last } = schedule;
  const definedElsewhere =
    source === "api" ? null : `The agent ${agent_name} defines this schedule. Edit the agent instead.`;
  const remove = (): void =>
    void api.schedules.remove(schedule_id).then(async () => {
      toast(`Deleted ${name}`, "Its runs are kept.");
      await navigate({ to: "/schedules" });
      await refreshSchedules();
    }, toastError);
  return (
    <>
      <div className="row wrap" style={{ marginBottom: 4 }}>
        <h1>{name}</h1>
        {last === null ? null : <SlotState slot={last} />}
        {enabled ? null : <StatusMark icon="wait" tone="idle" status="disabled" label="Disabled" />}
        <span className={styles["actions"]}>
          <Button variant="danger" icon="trash" disabledReason={readOnlyReason ?? definedElsewhere} onClick={remove}>
            Delete
          </Button>
          <Button icon="edit" disabledReason={readOnlyReason ?? definedElsewhere} onClick={onEdit}>
            Edit
          </Button>
          <Button
            icon={enabled ? "wait" : "ok"}
            disabledReason={readOnlyReason}
            onClick={() => setEnabled(schedule, !enabled)}
          >
            {enabled ? "Disable" : "Enable"}
          </Button>
          <Button variant="primary" icon="runs" disabledReason={readOnlyReason} onClick={() => runNow(schedule)}>
            Run now
          </Button>
        </span>
      </div>
      <div className={styles["facts"]}>
        <span className="row">
          runs{" "}
          <Link className={tableLink} to="/agents/$name" params={{ name: agent_name }}>
            {agent_name}
          </Link>
        </span>
        <ScheduleTiming {...schedule} />
        <span>by {schedule.created_by}</span>
        <span className="row" style={{ gap: 2 }}>
          <span className="mono">{formatShortId(schedule_id)}</span>
          <CopyButton text={schedule_id} label="Copy the id" />
        </span>
      </div>
    </>
  );
}

function Definition({ schedule }: { schedule: Schedule }) {
  const { overlap, catch_up, resume_session, attended, prompt, parameters } = schedule;
  return (
    <Card title="Each run">
      <div className="stack tight">
        <Facts
          facts={[
            ["Overlap", overlap.replace("_", " ")],
            ["Catch up", catch_up],
            ["Session", resume_session ? "continue the previous one" : "a new one each time"],
            ["Questions", attended === null ? "agent's default" : attended ? "ask people" : "do not ask"],
          ]}
        />
        {prompt === null ? null : <Code text={prompt} label="Prompt" />}
        {Object.keys(parameters).length > 0 ? <JsonTree value={parameters} /> : null}
      </div>
    </Card>
  );
}
