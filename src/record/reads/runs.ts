import type { Run } from "../../model/run.ts";
import type { Page, RunFilter, RunRow } from "../../model/store.ts";
import { runFromRow, selectRuns } from "../moves/run-columns.ts";
import { all, first, type SqlValue, type Work } from "../query.ts";
import { textOrNull, toColumn } from "../text.ts";
import { countThatFits } from "./events.ts";
import { uuidTimeBounds } from "./uuid-time.ts";

const oneRun = `${selectRuns} where run_id = ?`;
const runSizes = `
  select octet_length(demands.body) + coalesce(octet_length(runs.error), 0) + coalesce(octet_length(runs.summary), 0)
    + coalesce(octet_length(runs.project_dir), 0) + coalesce(octet_length(runs.usage), 0) as size
  from runs join demands using (demand_id)`;
const oneBody = `
  select parameters, prompt, result_text, result_data from run_bodies join runs using (run_no) where run_id = ?`;

export function* readRun(run_id: string): Work<Run | null> {
  const row = yield* readRunRow(run_id);
  if (row === null) return null;
  const [body] = yield first(oneBody, toColumn(run_id));
  return {
    ...row,
    // create_run wrote it from a Run's parameters.
    parameters: JSON.parse(String(body?.["parameters"] ?? "{}")) as Run["parameters"],
    prompt: textOrNull(body?.["prompt"]),
    result_text: textOrNull(body?.["result_text"]),
    result_data: typeof body?.["result_data"] === "string" ? JSON.parse(body["result_data"]) : null,
  };
}

/** Without parameters, prompt and result, which may be megabytes. */
export function* readRunRow(run_id: string): Work<RunRow | null> {
  const [row] = yield first(oneRun, toColumn(run_id));
  return row === undefined ? null : runFromRow(row);
}

export function* readRuns(filter: RunFilter, page: Page): Work<RunRow[]> {
  const { conditions, values } = whereRuns(filter, page);
  const where = conditions.length === 0 ? "" : `where ${conditions.join(" and ")}`;
  const ordered = `${where} order by run_id desc limit ?`;
  const limit =
    page.bounded === true ? countThatFits(yield all(`${runSizes} ${ordered}`, ...values, page.limit)) : page.limit;
  return (yield all(`${selectRuns} ${ordered}`, ...values, limit)).map(runFromRow);
}

const equals = [
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

export function whereRuns(filter: RunFilter, page: Pick<Page, "before">): { conditions: string[]; values: SqlValue[] } {
  const conditions: string[] = [];
  const values: SqlValue[] = [];
  for (const name of equals) {
    const wanted = filter[name];
    if (wanted !== undefined) add(`${name} = ?`, toColumn(wanted));
  }
  if (filter.status !== undefined) {
    // Remove duplicates: each number of placeholders is a statement of its own in the cache.
    const statuses = [...new Set(filter.status)];
    // An empty list is not valid SQL, and matches nothing.
    if (statuses.length === 0) conditions.push("1 = 0");
    else add(`status in (${statuses.map(() => "?").join(", ")})`, ...statuses);
    // Repeats the condition of the partial index word for word, otherwise SQLite would not use it.
    if (!statuses.includes("completed")) conditions.push("status <> 'completed'");
  }
  if (filter.since !== undefined) add("created_at >= ?", toColumn(filter.since));
  if (filter.until !== undefined) add("created_at < ?", toColumn(filter.until));
  const { least, most } = uuidTimeBounds(filter.since, filter.until);
  if (least !== null) add("run_id >= ?", least);
  if (most !== null) add("run_id <= ?", most);
  if (page.before !== undefined) add("run_id < ?", toColumn(page.before));
  return { conditions, values };

  function add(condition: string, ...given: SqlValue[]): void {
    conditions.push(condition);
    values.push(...given);
  }
}
