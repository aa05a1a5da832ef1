import type { Agent } from "../../model/agent.ts";
import type { ListedAgent, RunnerRow } from "../../model/dispatch-ops.ts";
import { executorOf, factsFromRow, text } from "../ops/runner-row.ts";
import { isAssigned, statusIn } from "../moves/statuses.ts";
import { all, first, type Row, type Work } from "../query.ts";
import { toColumn } from "../text.ts";

const columns = `runners.*, (
    select count(*) from runs
    where runs.runner_id = runners.runner_id and ${isAssigned}
      and ${statusIn("busy", "runs.status")}) as running`;
const allRunners = `select ${columns} from runners order by runner_id`;
const oneRunner = `select ${columns} from runners where runner_id = ?`;
const namesOfAll = `select runner_id, name from runner_agents order by runner_id, name`;
const namesOfOne = `select runner_id, name from runner_agents where runner_id = ? order by name`;
const ofApi = `select name, owner, body from agents`;
const ofRunners = `
  select a.name, a.body, a.runner_id, runners.owner from runner_agents a join runners using (runner_id)`;
// Two of each: asked as `name = ? or ? is null`, no index is used.
const allAgents = [`${ofApi} order by name`, `${ofRunners} order by a.name, a.runner_id`] as const;
const agentsNamed = [`${ofApi} where name = ?`, `${ofRunners} where a.name = ? order by a.runner_id`] as const;

export function* readRunner(runner_id: string): Work<RunnerRow | null> {
  const [row] = yield first(oneRunner, toColumn(runner_id));
  if (row === undefined) return null;
  return runnerFromRow(row, namesByRunner(yield all(namesOfOne, toColumn(runner_id))));
}

export function* readRunners(): Work<RunnerRow[]> {
  const rows = yield all(allRunners);
  const names = namesByRunner(yield all(namesOfAll));
  return rows.map((row) => runnerFromRow(row, names));
}

export function* readAgents(name?: string): Work<ListedAgent[]> {
  const [api, runners] =
    name === undefined
      ? [yield all(allAgents[0]), yield all(allAgents[1])]
      : [yield all(agentsNamed[0], toColumn(name)), yield all(agentsNamed[1], toColumn(name))];
  return [...api.map((row) => listed(row, "api")), ...runners.map((row) => listed(row, "runner"))];
}

function namesByRunner(rows: readonly Row[]): Map<string, string[]> {
  const names = new Map<string, string[]>();
  for (const row of rows) {
    const runner_id = text(row, "runner_id");
    const known = names.get(runner_id);
    if (known === undefined) names.set(runner_id, [text(row, "name")]);
    else known.push(text(row, "name"));
  }
  return names;
}

function listed(row: Row, source: "api" | "runner"): ListedAgent {
  return {
    // Written from an Agent by put_agent or register_runner.
    agent: JSON.parse(String(row["body"])) as Agent,
    source,
    runner_id: source === "runner" ? text(row, "runner_id") : null,
    owner: text(row, "owner"),
  };
}

function runnerFromRow(row: Row, names: ReadonlyMap<string, string[]>): RunnerRow {
  const { executor_type: _, tags, ...facts } = factsFromRow(row);
  return {
    ...facts,
    tags: [...tags],
    owner: text(row, "owner"),
    name: row["name"] === null ? null : text(row, "name"),
    executor: executorOf(row),
    slots: Number(row["slots"]),
    only_agent: row["only_agent"] === null ? null : text(row, "only_agent"),
    agents: names.get(facts.runner_id) ?? [],
    // Only these words are ever written.
    status: row["status"] as RunnerRow["status"],
    epoch: Number(row["epoch"]),
    running: Number(row["running"]),
    registered_at: new Date(Number(row["registered_at"])).toISOString(),
    last_seen_at: new Date(Number(row["last_seen_at"])).toISOString(),
  };
}
