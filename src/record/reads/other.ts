import type { Agent } from "../../model/agent.ts";
import type { Demands } from "../../model/run.ts";
import type { Session } from "../../model/session.ts";
import type { RunStatus } from "../../model/states.ts";
import type { Token } from "../../model/token.ts";
import { selectToken, tokenFromRow } from "../ops/tokens.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Row } from "../sqlite/driver.ts";
import { fromColumn, toColumn } from "../text.ts";

export { readAgents, readRunner, readRunners } from "./runners.ts";
export { readWhy } from "./why.ts";

const tokenPage = `select * from tokens where (?1 is null or token_id < ?1) order by token_id desc limit ?2`;
const oneSession = `select * from sessions where session_id = ?`;
const sessionPage = `
  select * from sessions
  where (?1 is null or agent_name = ?1) and (?2 is null or created_by = ?2) and (?3 is null or session_id < ?3)
  order by session_id desc limit ?4`;
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

export function readSession(connection: Connection, session_id: string): Session | null {
  const row = connection.sql(oneSession).get(toColumn(session_id));
  return row === undefined ? null : sessionFromRow(row);
}

export function readSessions(
  connection: Connection,
  filter: { agent_name?: string; created_by?: string },
  page: { before?: string; limit: number },
): Session[] {
  return connection
    .sql(sessionPage)
    .all(
      toColumn(filter.agent_name ?? null),
      toColumn(filter.created_by ?? null),
      toColumn(page.before ?? null),
      page.limit,
    )
    .map(sessionFromRow);
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

function sessionFromRow(row: Row): Session {
  return {
    session_id: fromColumn(String(row["session_id"])),
    executor_session_id: textOrNull(row, "executor_session_id"),
    agent_name: fromColumn(String(row["agent_name"])),
    created_by: fromColumn(String(row["created_by"])),
    hostname: textOrNull(row, "hostname"),
    executor_profile: textOrNull(row, "executor_profile"),
    project_dir: textOrNull(row, "project_dir"),
    run_count: Number(row["run_count"]),
    created_at: fromColumn(String(row["created_at"])),
    last_used_at: fromColumn(String(row["last_used_at"])),
  };
}

function textOrNull(row: Row, name: string): string | null {
  const value = row[name];
  return typeof value === "string" ? fromColumn(value) : null;
}
