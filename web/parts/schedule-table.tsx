import { Link } from "@tanstack/react-router";
import { api } from "../data/client.ts";
import { queryClient, type Schedule } from "../data/queries.ts";
import { Button } from "./button.tsx";
import { SlotState, describeSlotReason } from "./slot.tsx";
import { StatusMark } from "./status.tsx";
import { type Column, Table, tableLink } from "./table.tsx";
import { Age, TimeUntil } from "./time.tsx";
import { toast, toastError } from "./toasts.tsx";
import styles from "./schedule-table.module.css";

export function ScheduleTable({
  schedules,
  label,
  readOnlyReason,
}: {
  schedules: readonly Schedule[];
  label: string;
  /** Why the user may not change schedules, or null if they may. */
  readOnlyReason: string | null;
}) {
  return (
    <Table
      label={label}
      columns={buildColumns(readOnlyReason)}
      rows={schedules}
      getKey={({ schedule_id }) => schedule_id}
    />
  );
}

const buildColumns = (readOnlyReason: string | null): Column<Schedule>[] => [
  {
    head: "Schedule",
    cell: ({ schedule_id, name }) => (
      <Link className={tableLink} to="/schedules/$scheduleId" params={{ scheduleId: schedule_id }}>
        {name}
      </Link>
    ),
  },
  { head: "Last slot", cell: ({ last }) => <LastSlot last={last} /> },
  {
    head: "Agent",
    title: ({ agent_name }) => agent_name,
    cell: ({ agent_name }) => (
      <Link to="/agents/$name" params={{ name: agent_name }}>
        {agent_name}
      </Link>
    ),
  },
  { head: "When", title: describeTiming, cell: (schedule) => <ScheduleTiming {...schedule} /> },
  { head: "Next", cell: (schedule) => <Next schedule={schedule} /> },
  { head: "Defined by", tone: "dim", cell: describeSource },
  {
    head: "Actions",
    hideHeader: true,
    right: true,
    cell: (schedule) => (
      <span className={styles["actions"]}>
        <Button
          variant="quiet"
          disabledReason={readOnlyReason}
          aria-label={`${schedule.enabled ? "Disable" : "Enable"} ${schedule.name}`}
          onClick={() => setEnabled(schedule, !schedule.enabled)}
        >
          {schedule.enabled ? "Disable" : "Enable"}
        </Button>
        <Button
          icon="runs"
          disabledReason={readOnlyReason}
          aria-label={`Run ${schedule.name} now`}
          onClick={() => runNow(schedule)}
        >
          <span className={styles["label"]}>Run now</span>
        </Button>
      </span>
    ),
  },
];

function describeSource({ source, created_by }: Schedule): string {
  return source === "api" ? created_by : source === "file" ? "agent file" : "agent";
}

function LastSlot({ last }: Pick<Schedule, "last">) {
  if (last === null) return <span className="faint">None yet</span>;
  return (
    <span className={styles["pair"]} title={describeSlotReason(last)}>
      <SlotState slot={last} />
      <span className="faint">
        <Age at={last.at} suffix=" ago" />
      </span>
    </span>
  );
}

export function ScheduleTiming({ cron, every, timezone }: Pick<Schedule, "cron" | "every" | "timezone">) {
  if (every !== null) return <>every {every}</>;
  return (
    <span className={styles["pair"]}>
      <span className="mono">{cron}</span>
      <span className="faint">{timezone}</span>
    </span>
  );
}

function describeTiming({ cron, every, timezone }: Pick<Schedule, "cron" | "every" | "timezone">): string {
  return every === null ? `${cron} ${timezone}` : `every ${every}`;
}

function Next({ schedule: { enabled, next } }: { schedule: Schedule }) {
  if (!enabled) return <StatusMark icon="wait" tone="idle" status="disabled" label="Disabled" />;
  return next[0] === undefined ? <span className="faint">never</span> : <TimeUntil at={next[0]} />;
}

export function setEnabled({ schedule_id, name, source }: Schedule, enabled: boolean): void {
  const detail = source === "file" ? "This stays in effect until the agent's file changes." : null;
  void api.schedules.change(schedule_id, { enabled }).then(() => {
    toast(`${enabled ? "Enabled" : "Disabled"} ${name}`, detail);
    return refreshSchedules();
  }, toastError);
}

export function runNow({ schedule_id, name }: Schedule): void {
  void api.schedules.run(schedule_id).then(() => {
    toast(`Started ${name}`, "Its next slots are unchanged.");
    return refreshSchedules();
  }, toastError);
}

export function refreshSchedules(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: ["schedules"] });
}
