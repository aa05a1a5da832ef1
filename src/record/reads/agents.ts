import type { Agent } from "../../model/agent.ts";
import type { AgentPosition } from "../../model/agent-position.ts";
import { compareAgentPositions, toAgentPosition } from "../../model/agent-position.ts";
import type { ListedAgent, RunnerRow } from "../../model/dispatch-ops.ts";
import { getText } from "../ops/runner-row.ts";
import { all, type Row, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import { countFittingRows } from "./events.ts";

const fromApi = `from agents`;
const fromRunners = `from runner_agents a join runners using (runner_id)`;
const apiColumns = `select name, owner, body`;
const runnerColumns = `select a.name, a.body, a.runner_id, runners.owner, runners.status`;
const selectByName = [
  `${apiColumns} ${fromApi} where name = ?`,
  `${runnerColumns} ${fromRunners} where a.name = ? order by a.runner_id`,
] as const;
// `name >= ?` uses the index; the rest selects the position within the name.
const apiAfter = `${fromApi} where name >= ?1 and (name > ?1 or ?2 = 1) order by name limit ?3`;
const runnersAfter = `${fromRunners} where a.name >= ?1 and (a.name > ?1 or a.runner_id > ?2) order by a.name, a.runner_id limit ?3`;
const apiSizes = `select name, octet_length(body) as size ${apiAfter}`;
const runnerSizes = `select a.name, a.runner_id, octet_length(a.body) as size ${runnersAfter}`;
const selectNames = `
  select name from agents union select name from runner_agents order by name limit ?`;

export function* readAgents(name: string): Work<ListedAgent[]> {
  const api = yield all(selectByName[0], toColumn(name));
  const runners = yield all(selectByName[1], toColumn(name));
  return [...api, ...runners].map(toListedAgent);
}

export function* readAgentNames(limit: number): Work<string[]> {
  return (yield all(selectNames, limit)).map((row) => getText(row, "name"));
}

/** Sorted by name, agents from the API first. Returns as many as fit into a page of bytes, and at least one. */
export function* readAgentPage(page: {
  after?: AgentPosition;
  limit: number;
}): Work<{ items: ListedAgent[]; more: boolean }> {
  const { name, rank, runner_id } = page.after ?? { name: "", rank: 0, runner_id: "" };
  const [includesApi, afterRunner] = [rank < 1 ? 1 : 0, rank < 3 ? "" : runner_id];
  const measured = [
    ...(yield all(apiSizes, toColumn(name), includesApi, page.limit + 1)),
    ...(yield all(runnerSizes, toColumn(name), toColumn(afterRunner), page.limit + 1)),
  ].sort((a, b) => compareAgentPositions(toPosition(a), toPosition(b)));
  const fitting = measured.slice(0, Math.min(countFittingRows(measured), page.limit));
  const runnerCount = fitting.filter((row) => "runner_id" in row).length;
  const api = yield all(`${apiColumns} ${apiAfter}`, toColumn(name), includesApi, fitting.length - runnerCount);
  const runners = yield all(`${runnerColumns} ${runnersAfter}`, toColumn(name), toColumn(afterRunner), runnerCount);
  const items = [...api, ...runners].map(toListedAgent);
  items.sort((a, b) => compareAgentPositions(toAgentPosition(a), toAgentPosition(b)));
  return { items, more: measured.length > fitting.length };
}

function toPosition(row: Row): AgentPosition {
  const fromRunner = "runner_id" in row;
  return {
    name: getText(row, "name"),
    rank: fromRunner ? 3 : 1,
    runner_id: fromRunner ? getText(row, "runner_id") : "",
  };
}

function toListedAgent(row: Row): ListedAgent {
  const fromRunner = "runner_id" in row;
  return {
    // put_agent or register_runner wrote it from an Agent.
    agent: JSON.parse(String(row["body"])) as Agent,
    source: fromRunner ? "runner" : "api",
    runner_id: fromRunner ? getText(row, "runner_id") : null,
    owner: getText(row, "owner"),
    // The column holds one of the three statuses.
    ...(fromRunner ? { runner_status: String(row["status"]) as RunnerRow["status"] } : {}),
  };
}
