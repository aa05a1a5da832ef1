import type { Run } from "../../model/run.ts";
import type { Page, RunFilter, RunRow } from "../../model/store.ts";
import { toRunRow, selectRuns } from "../moves/run-columns.ts";
import { all, first, type SqlValue, type Work } from "../query.ts";
import { textOrNull, toColumn } from "../text.ts";
import { buildSuffixCondition } from "./suffix-condition.ts";
import { countFittingRows } from "./events.ts";
import { toUuidTimeBounds } from "./uuid-time.ts";

const selectRun = `${selectRuns} where run_id = ?`;
const selectSizes = `
  select octet_length(demands.body) + coalesce(octet_length(runs.error), 0) + coalesce(octet_length(runs.summary), 0)
    + coalesce(octet_length(runs.project_dir), 0) + coalesce(octet_length(runs.usage), 0) as size
  from runs join demands using (demand_id)`;
const selectBody = `
  select parameters, prompt, result_text, result_data from run_bodies join runs using (run_no) where run_id = ?`;

export function* readRun(run_id: string): Work<Run | null> {
  const row = yield* readRunRow(run_id);
  if (row === null) return null;
  const [body] = yield first(selectBody, toColumn(run_id));
  return {
    ...row,
    // create_run wrote this value from a Run's parameters.
    parameters: JSON.parse(String(body?.["parameters"] ?? "{}")) as Run["parameters"],
    prompt: textOrNull(body?.["prompt"]),
    result_text: textOrNull(body?.["result_text"]),
    result_data: typeof body?.["result_data"] === "string" ? JSON.parse(body["result_data"]) : null,
  };
}

/** Reads a run without its parameters, prompt and result, which may be megabytes. */
export function* readRunRow(run_id: string): Work<RunRow | null> {
  const [row] = yield first(selectRun, toColumn(run_id));
  return row === undefined ? null : toRunRow(row);
}

export function* readRuns(filter: RunFilter, page: Page): Work<RunRow[]> {
  const { conditions, values } = buildRunConditions(filter, page);
  const where = conditions.length === 0 ? "" : `where ${conditions.join(" and ")}`;
  const pageClause = `${where} order by run_id desc limit ?`;
  const limit =
    page.limitBytes === true
      ? countFittingRows(yield all(`${selectSizes} ${pageClause}`, ...values, page.limit))
      : page.limit;
  return (yield all(`${selectRuns} ${pageClause}`, ...values, limit)).map(toRunRow);
}

const exactColumns = [
  "agent_name",
  "created_by",
  "parent_run_id",
  "session_id",
  "task_id",
  "step_id",
  "tool_call_id",
  "worktree_id",
  "repo_sha",
] as const;

export function buildRunConditions(
  filter: RunFilter,
  page: Pick<Page, "before">,
): { conditions: string[]; values: SqlValue[] } {
  const conditions: string[] = [];
  const values: SqlValue[] = [];
  for (const name of exactColumns) {
    const value = filter[name];
    if (value !== undefined) addCondition(`${name} = ?`, toColumn(value));
  }
  if (filter.status !== undefined) {
    // Remove duplicates: the statement cache has one entry per number of placeholders.
    const statuses = [...new Set(filter.status)];
    // An empty list is not valid SQL, and matches nothing.
    if (statuses.length === 0) conditions.push("1 = 0");
    else addCondition(`status in (${statuses.map(() => "?").join(", ")})`, ...statuses);
    // Repeats the condition of the partial index word for word. Otherwise SQLite would not use it.
    if (!statuses.includes("completed")) conditions.push("status <> 'completed'");
  }
  if (filter.id_suffix !== undefined) addCondition(buildSuffixCondition("runs", "run_id"), `%${filter.id_suffix}`);
  if (filter.since !== undefined) addCondition("created_at >= ?", toColumn(filter.since));
  if (filter.until !== undefined) addCondition("created_at < ?", toColumn(filter.until));
  const { min, max } = toUuidTimeBounds(filter.since, filter.until);
  if (min !== null) addCondition("run_id >= ?", min);
  if (max !== null) addCondition("run_id <= ?", max);
  if (page.before !== undefined) addCondition("run_id < ?", toColumn(page.before));
  return { conditions, values };

  function addCondition(condition: string, ...newValues: SqlValue[]): void {
    conditions.push(condition);
    values.push(...newValues);
  }
}
