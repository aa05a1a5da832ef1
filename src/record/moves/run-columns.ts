import type { Run } from "../../model/run.ts";
import type { RunRow } from "../../model/store.ts";
import type { Row, SqlValue } from "../query.ts";
import { textOrNull, toColumn } from "../text.ts";

/** Columns that hold a Run's field of the same name as text that comes from outside. */
const texts = [
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

/** Words of closed lists, and numbers: stored as they are. */
const plain = [
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

/** Fields of a Run that are columns of its row. */
export const runFields = [...texts, ...plain, "attended", "usage"] as const;

/** In the order of runValues. */
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

/** What a list needs, demands included; the bodies are read apart. */
export const selectRuns = `
  select runs.run_no, ${[...texts, ...plain].map((name) => `runs.${name}`).join(", ")},
    runs.attended, runs.usage, demands.body as demands
  from runs join demands using (demand_id)`;

/** What a row has that a Run does not show. */
export interface Unshown {
  demandId: number;
  last: { n: number; seq: number };
  agentRevId: number | null;
  timeoutSeconds: number | null;
  blockedBy: string | null;
  inPlace: boolean;
  /** Its agent has a budget for each day. */
  budgeted: boolean;
  /** Its agent has a chain. */
  chained: boolean;
  /** Something that it was asked with is kept encrypted. */
  sealed: boolean;
}

export function runValues(run: Run, unshown: Unshown): SqlValue[] {
  const { demandId, last, agentRevId, timeoutSeconds, blockedBy, inPlace, budgeted, chained, sealed } = unshown;
  return [
    ...texts.map((name) => toColumn(run[name])),
    ...plain.map((name) => run[name]),
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

export function runFromRow(row: Row): RunRow {
  const run: Record<string, unknown> = {};
  for (const name of texts) run[name] = textOrNull(row[name]);
  for (const name of plain) run[name] = row[name];
  run["attended"] = row["attended"] === 1;
  run["usage"] = typeof row["usage"] === "string" ? JSON.parse(row["usage"]) : null;
  run["demands"] = JSON.parse(String(row["demands"]));
  // Every field was written from a Run by runValues, under the same names.
  return run as unknown as RunRow;
}
