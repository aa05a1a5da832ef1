import type { RunnerRow } from "../../model/dispatch-ops.ts";
import type { DispatchReads } from "../../model/dispatch-reads.ts";
import { parseExecutor, toRunnerFacts, getText } from "../ops/runner-row.ts";
import { isAssignedToRunner, statusIn } from "../moves/statuses.ts";
import { all, first, type Row, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import { countFittingRows } from "./events.ts";

const columns = `runners.*, (
    select count(*) from runs
    where runs.runner_id = runners.runner_id and ${isAssignedToRunner}
      and ${statusIn("busy", "runs.status")}) as running`;
const selectRunners = `select ${columns} from runners order by runner_id`;
const selectRunner = `select ${columns} from runners where runner_id = ?`;
const selectAllNames = `select runner_id, name from runner_agents order by runner_id, name`;
const selectNames = `select runner_id, name from runner_agents where runner_id = ? order by name`;
const selectNamesBetween = `
  select runner_id, name from runner_agents where runner_id > ? and runner_id <= ? order by runner_id, name`;
const selectSizes = `
  select runner_id, octet_length(executor) + octet_length(tags) + octet_length(project_dir) + coalesce((
    select sum(octet_length(name)) from runner_agents where runner_agents.runner_id = runners.runner_id), 0) as size
  from runners`;

export function* readRunner(runner_id: string): Work<RunnerRow | null> {
  const [row] = yield first(selectRunner, toColumn(runner_id));
  if (row === undefined) return null;
  return toRunnerRow(row, groupNames(yield all(selectNames, toColumn(runner_id))));
}

export function* readRunners(): Work<RunnerRow[]> {
  const rows = yield all(selectRunners);
  const names = groupNames(yield all(selectAllNames));
  return rows.map((row) => toRunnerRow(row, names));
}

/** Returns as many as fit into a page of bytes, and at least one. */
export function* readRunnerPage(page: Parameters<DispatchReads["runner_page"]>[0]): Work<{
  items: RunnerRow[];
  more: boolean;
}> {
  const after = toColumn(page.after ?? "");
  const owner = page.owner === undefined ? [] : [toColumn(page.owner)];
  const pageClause = `where runner_id > ? ${page.owner === undefined ? "" : "and owner = ?"} order by runner_id limit ?`;
  const measured = yield all(`${selectSizes} ${pageClause}`, after, ...owner, page.limit + 1);
  const fitting = Math.min(countFittingRows(measured), page.limit);
  const rows = yield all(`select ${columns} from runners ${pageClause}`, after, ...owner, fitting);
  const last = measured[fitting - 1]?.["runner_id"] ?? after;
  const names = groupNames(yield all(selectNamesBetween, after, last));
  return { items: rows.map((row) => toRunnerRow(row, names)), more: measured.length > fitting };
}

function groupNames(rows: readonly Row[]): Map<string, string[]> {
  const byRunner = new Map<string, string[]>();
  for (const row of rows) {
    const runner_id = getText(row, "runner_id");
    const names = byRunner.get(runner_id);
    if (names === undefined) byRunner.set(runner_id, [getText(row, "name")]);
    else names.push(getText(row, "name"));
  }
  return byRunner;
}

function toRunnerRow(row: Row, names: ReadonlyMap<string, string[]>): RunnerRow {
  const { executor_type: _, tags, ...facts } = toRunnerFacts(row);
  return {
    ...facts,
    tags: [...tags],
    owner: getText(row, "owner"),
    name: row["name"] === null ? null : getText(row, "name"),
    executor: parseExecutor(row),
    slots: Number(row["slots"]),
    only_agent: row["only_agent"] === null ? null : getText(row, "only_agent"),
    agents: names.get(facts.runner_id) ?? [],
    // Only these values are ever written.
    status: row["status"] as RunnerRow["status"],
    epoch: Number(row["epoch"]),
    running: Number(row["running"]),
    registered_at: new Date(Number(row["registered_at"])).toISOString(),
    last_seen_at: new Date(Number(row["last_seen_at"])).toISOString(),
  };
}
