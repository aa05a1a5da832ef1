import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { queries, type Schedule } from "../../data/queries.ts";
import { Icon } from "../../parts/icon.tsx";
import { describeSlotReason } from "../../parts/slot.tsx";
import { tableLink } from "../../parts/table.tsx";
import styles from "./page.module.css";

/** Explains where to edit a schedule that an agent defines. */
export function DefinitionNote({ schedule: { source, agent_name } }: { schedule: Schedule }) {
  if (source === "api") return null;
  const agent = (
    <Link className={tableLink} to="/agents/$name" params={{ name: agent_name }}>
      {agent_name}
    </Link>
  );
  return (
    <p className={styles["note"]}>
      <Icon name="file" />
      <span>
        {source === "file" ? (
          <>
            The file of agent {agent} defines this schedule under <code>schedules</code>. To change it, edit that file
            in the coordinator&apos;s agents directory.
          </>
        ) : (
          <>
            The agent {agent} defines this schedule under <code>schedules</code>. To change it, edit the agent.
          </>
        )}{" "}
        On this page you can enable, disable and run the schedule.
      </span>
    </p>
  );
}

/** A warning at the top of the page, so that a failing schedule is noticed. */
export function FailureWarning({ schedule: { last } }: { schedule: Schedule }) {
  const run_id = last?.run_id ?? null;
  const run = useQuery({ ...queries.run(run_id ?? ""), enabled: run_id !== null }).data;
  if (last === null) return null;
  return (
    <p className={styles["note"]} data-tone="bad" role="alert">
      <Icon name="warn" />
      <span>
        {run_id === null ? (
          <>The last slot has no run. {describeSlotReason(last)}</>
        ) : (
          <>
            The{" "}
            <Link className={tableLink} to="/runs/$runId" params={{ runId: run_id }}>
              last run
            </Link>{" "}
            failed{last.run_reason === null ? "" : `: ${last.run_reason}`}. {run?.error}
          </>
        )}
      </span>
    </p>
  );
}
