import type { Agent } from "../../model/agent.ts";
import type { Demands } from "../../model/run.ts";
import type { RunStatus } from "../../model/states.ts";
import type { Token } from "../../model/token.ts";
import { selectToken, tokenFromRow } from "../ops/tokens.ts";
import type { Connection } from "../sqlite/connection.ts";
import { toColumn } from "../text.ts";

export { readFile, readFiles } from "./files.ts";
export { readAgents, readRunner, readRunners } from "./runners.ts";
export { readGoneSessions, readSession, readSessions, readVersions } from "./sessions.ts";
export { readWhy } from "./why.ts";

const tokenPage = `select * from tokens where (?1 is null or token_id < ?1) order by token_id desc limit ?2`;
const countOpen = `
  select status, count(*) as runs from runs
  where status in ('pending', 'claimed', 'running', 'waiting', 'parked', 'stopping') and status <> 'completed' group by status`;
const hasWork = `
  select exists (select 1 from orders where runner_id = ?1) or exists (
    select 1 from demand_matches m where m.runner_id = ?1 and exists (
      select 1 from runs indexed by runs_to_claim
      where runs.demand_id = m.demand_id and runs.status = 'pending' and runs.blocked_by is null)) as work`;
const agentOf = `
  select agent_revs.body, runs.timeout_seconds, demands.body as demands
  from runs join agent_revs using (agent_rev_id) join demands using (demand_id) where run_id = ?`;

export function readToken(connection: Connection, hash: string): Token | null {
  const row = connection.sql(selectToken).get(toColumn(hash));
  return row === undefined ? null : tokenFromRow(row);
}

export function readTokens(connection: Connection, page: { before?: string; limit: number }): Token[] {
  return connection
    .sql(tokenPage)
    .all(toColumn(page.before ?? null), page.limit)
    .map(tokenFromRow);
}

export function readOpenRuns(connection: Connection): Partial<Record<RunStatus, number>> {
  return Object.fromEntries(
    connection
      .sql(countOpen)
      .all()
      .map((row) => [String(row["status"]), Number(row["runs"])]),
  );
}

export function readHasWork(connection: Connection, runner_id: string): boolean {
  return connection.sql(hasWork).get(toColumn(runner_id))?.["work"] === 1;
}

export function readAgentOf(
  connection: Connection,
  run_id: string,
): { agent: Agent; timeout_seconds: number | null; demands: Demands } | null {
  const row = connection.sql(agentOf).get(toColumn(run_id));
  if (row === undefined) return null;
  return {
    // Both were written from the model's types by create_run.
    agent: JSON.parse(String(row["body"])) as Agent,
    demands: JSON.parse(String(row["demands"])) as Demands,
    timeout_seconds: row["timeout_seconds"] === null ? null : Number(row["timeout_seconds"]),
  };
}
