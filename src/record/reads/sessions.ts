import type { Session, SessionVersion } from "../../model/session.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Row } from "../sqlite/driver.ts";
import { fromColumn, toColumn } from "../text.ts";

const oneSession = `select * from sessions where session_id = ?`;
const sessionPage = `
  select * from sessions
  where (?1 is null or agent_name = ?1) and (?2 is null or created_by = ?2) and (?3 is null or session_id < ?3)
  order by session_id desc limit ?4`;
const versions = `
  select run_id, mode, status, executor_session_id, coalesce(
    (select max(run_id) from runs before where before.session_id = runs.session_id and before.run_id < runs.run_id),
    (select max(run_id) from runs origin where origin.session_id = runs.forked_from and origin.run_id < runs.run_id)) as parent
  from runs where session_id = ? order by run_id desc limit 1000`;

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

export function readVersions(connection: Connection, session_id: string): SessionVersion[] {
  return connection
    .sql(versions)
    .all(toColumn(session_id))
    .map((row) => ({
      run_id: fromColumn(String(row["run_id"])),
      // Only words of these lists are ever written.
      mode: row["mode"] as SessionVersion["mode"],
      status: row["status"] as SessionVersion["status"],
      parent: textOrNull(row, "parent"),
      executor_session_id: textOrNull(row, "executor_session_id"),
    }));
}

export function readGoneSessions(connection: Connection, session_ids: readonly string[]): string[] {
  return session_ids.filter((session_id) => connection.sql(oneSession).get(toColumn(session_id)) === undefined);
}

function sessionFromRow(row: Row): Session {
  return {
    session_id: fromColumn(String(row["session_id"])),
    executor_session_id: textOrNull(row, "executor_session_id"),
    agent_name: fromColumn(String(row["agent_name"])),
    created_by: fromColumn(String(row["created_by"])),
    hostname: textOrNull(row, "hostname"),
    executor_profile: textOrNull(row, "executor_profile"),
    runner_id: textOrNull(row, "runner_id"),
    project_dir: textOrNull(row, "project_dir"),
    run_count: Number(row["run_count"]),
    created_at: fromColumn(String(row["created_at"])),
    last_used_at: fromColumn(String(row["last_used_at"])),
    forked_from: textOrNull(row, "forked_from"),
  };
}

function textOrNull(row: Row, name: string): string | null {
  const value = row[name];
  return typeof value === "string" ? fromColumn(value) : null;
}
