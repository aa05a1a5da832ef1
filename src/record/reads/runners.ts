import type { Agent } from "../../model/agent.ts";
import type { ListedAgent, RunnerRow } from "../../model/dispatch-ops.ts";
import { executorOf, factsFromRow, text } from "../ops/runner-row.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Row } from "../sqlite/driver.ts";
import { fromColumn, toColumn } from "../text.ts";

const columns = `runners.*, (
    select count(*) from runs
    where runs.runner_id = runners.runner_id and runs.agent_rev_id is not null
      and runs.status in ('claimed', 'running', 'waiting', 'stopping') and runs.status <> 'waiting') as running, (
    select json_group_array(name) from (select name from runner_agents a where a.runner_id = runners.runner_id order by name)) as agents`;
const allRunners = `select ${columns} from runners order by runner_id`;
const oneRunner = `select ${columns} from runners where runner_id = ?`;
const apiAgents = `select name, owner, body from agents where (?1 is null or name = ?1) order by name`;
const runnersAgents = `
  select a.name, a.body, a.runner_id, runners.owner from runner_agents a join runners using (runner_id)
  where (?1 is null or a.name = ?1) order by a.name, a.runner_id`;

export function readRunner(connection: Connection, runner_id: string): RunnerRow | null {
  const row = connection.sql(oneRunner).get(toColumn(runner_id));
  return row === undefined ? null : runnerFromRow(row);
}

export function readRunners(connection: Connection): RunnerRow[] {
  return connection.sql(allRunners).all().map(runnerFromRow);
}

export function readAgents(connection: Connection, name?: string): ListedAgent[] {
  const wanted = toColumn(name ?? null);
  return [
    ...connection
      .sql(apiAgents)
      .all(wanted)
      .map((row) => listed(row, "api")),
    ...connection
      .sql(runnersAgents)
      .all(wanted)
      .map((row) => listed(row, "runner")),
  ];
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

function runnerFromRow(row: Row): RunnerRow {
  const { executor_type: _, tags, ...facts } = factsFromRow(row);
  return {
    ...facts,
    tags: [...tags],
    owner: text(row, "owner"),
    name: row["name"] === null ? null : text(row, "name"),
    executor: executorOf(row),
    slots: Number(row["slots"]),
    only_agent: row["only_agent"] === null ? null : text(row, "only_agent"),
    // Made of stored names by the statement above.
    agents: (JSON.parse(String(row["agents"])) as string[]).map(fromColumn),
    // Only these words are ever written.
    status: row["status"] as RunnerRow["status"],
    epoch: Number(row["epoch"]),
    running: Number(row["running"]),
    registered_at: new Date(Number(row["registered_at"])).toISOString(),
    last_seen_at: new Date(Number(row["last_seen_at"])).toISOString(),
  };
}
