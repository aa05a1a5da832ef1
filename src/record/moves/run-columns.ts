import type { Run } from "../../model/run.ts";
import type { RunRow } from "../../model/store.ts";
import type { Row, SqlValue } from "../query.ts";
import { textOrNull, toColumn } from "../text.ts";

/** Text columns named after a field of Run, with values from outside. */
const textColumns = [
  "run_id",
  "agent_name",
  "created_by",
  "waiting_for",
  "parked_why",
  "parked_until",
  "runner_id",
  "created_at",
  "claimed_at",
  "started_at",
  "finished_at",
  "session_id",
  "parent_run_id",
  "task_id",
  "step_id",
  "tool_call_id",
  "worktree_id",
  "repo_sha",
  "forked_from",
  "retry_of",
  "schedule",
  "project_dir",
  "model",
  "error",
  "summary",
] as const;

/** Numbers and enum values, stored without encoding. */
const plainColumns = [
  "mode",
  "status",
  "reason",
  "trigger_type",
  "priority",
  "fork_at_turn",
  "attempt",
  "failures",
  "progress",
  "exit_code",
  "isolation",
] as const;

/** Fields of Run that are columns of its row. */
export const runFields = [...textColumns, ...plainColumns, "attended", "usage"] as const;

/** The columns, in the order of the values that toRunValues returns. */
export const runColumns = [
  ...runFields,
  "demand_id",
  "last_n",
  "last_seq",
  "agent_rev_id",
  "timeout_seconds",
  "blocked_by",
  "in_place",
  "budgeted",
  "chained",
  "sealed",
] as const;

export const insertRun = `
  insert into runs (${runColumns.join(", ")}) values (${runColumns.map(() => "?").join(", ")})
  returning run_no`;

/** Selects the fields of runs in lists, including demands. Bodies are read separately. */
export const selectRuns = `
  select runs.run_no, ${[...textColumns, ...plainColumns].map((name) => `runs.${name}`).join(", ")},
    runs.attended, runs.usage, demands.body as demands
  from runs join demands using (demand_id)`;

/** Columns of a run that are not fields of Run. */
export interface HiddenColumns {
  demandId: number;
  last: { n: number; seq: number };
  agentRevId: number | null;
  timeoutSeconds: number | null;
  blockedBy: string | null;
  inPlace: boolean;
  /** Whether the run's agent has a daily budget. */
  budgeted: boolean;
  /** Whether the run's agent has an on_finish chain. */
  chained: boolean;
  /** Whether some of the run's parameters are stored encrypted. */
  sealed: boolean;
}

export function toRunValues(run: Run, hidden: HiddenColumns): SqlValue[] {
  const { demandId, last, agentRevId, timeoutSeconds, blockedBy, inPlace, budgeted, chained, sealed } = hidden;
  return [
    ...textColumns.map((name) => toColumn(run[name])),
    ...plainColumns.map((name) => run[name]),
    run.attended ? 1 : 0,
    run.usage === null ? null : JSON.stringify(run.usage),
    demandId,
    last.n,
    last.seq,
    agentRevId,
    timeoutSeconds,
    blockedBy,
    inPlace ? 1 : null,
    budgeted ? 1 : 0,
    chained ? 1 : 0,
    sealed ? 1 : 0,
  ];
}

export function toRunRow(row: Row): RunRow {
  const run: Record<string, unknown> = {};
  for (const name of textColumns) run[name] = textOrNull(row[name]);
  for (const name of plainColumns) run[name] = row[name];
  run["attended"] = row["attended"] === 1;
  run["usage"] = typeof row["usage"] === "string" ? JSON.parse(row["usage"]) : null;
  run["demands"] = JSON.parse(String(row["demands"]));
  // toRunValues wrote every field from a Run, under the same names.
  return run as unknown as RunRow;
}
