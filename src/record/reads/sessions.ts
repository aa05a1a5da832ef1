import type { Session, SessionVersion } from "../../model/session.ts";
import { all, first, type Row, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";

const oneSession = `select * from sessions where session_id = ?`;
const sessionPage = `
  select * from sessions
  where (agent_name = ?1 or ?1 is null) and (created_by = ?2 or ?2 is null) and (session_id < ?3 or ?3 is null)
  order by session_id desc limit ?4`;
const versions = `
  select run_id, mode, status, executor_session_id, coalesce(
    (select max(run_id) from runs before where before.session_id = runs.session_id and before.run_id < runs.run_id),
    (select max(run_id) from runs origin where origin.session_id = runs.forked_from and origin.run_id < runs.run_id)) as parent
  from runs where session_id = ? order by run_id desc limit 1000`;

export function* readSession(session_id: string): Work<Session | null> {
  const [row] = yield first(oneSession, toColumn(session_id));
  return row === undefined ? null : sessionFromRow(row);
}

export function* readSessions(
  filter: { agent_name?: string; created_by?: string },
  page: { before?: string; limit: number },
): Work<Session[]> {
  const rows = yield all(
    sessionPage,
    toColumn(filter.agent_name ?? null),
    toColumn(filter.created_by ?? null),
    toColumn(page.before ?? null),
    page.limit,
  );
  return rows.map(sessionFromRow);
}

export function* readVersions(session_id: string): Work<SessionVersion[]> {
  const rows = yield all(versions, toColumn(session_id));
  return rows.map((row) => ({
    run_id: fromColumn(String(row["run_id"])),
    // Only words of these lists are ever written.
    mode: row["mode"] as SessionVersion["mode"],
    status: row["status"] as SessionVersion["status"],
    parent: textOrNull(row, "parent"),
    executor_session_id: textOrNull(row, "executor_session_id"),
  }));
}

export function* readGoneSessions(session_ids: readonly string[]): Work<string[]> {
  const gone: string[] = [];
  for (const session_id of session_ids) {
    const [row] = yield first(oneSession, toColumn(session_id));
    if (row === undefined) gone.push(session_id);
  }
  return gone;
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
