import type { Session, SessionFilter, SessionVersion } from "../../model/session.ts";
import { batchIds, idPlaceholders } from "../id-batches.ts";
import { all, first, type Row, type Work } from "../query.ts";
import { fromColumn, textOrNull, toColumn } from "../text.ts";
import { buildSuffixCondition } from "./suffix-condition.ts";

const selectSessions = `
  select sessions.*, (select portable from session_states saved where saved.session_id = sessions.session_id) as portable
  from sessions`;
const selectSession = `${selectSessions} where session_id = ?`;
const selectExisting = `select session_id from sessions where session_id in (${idPlaceholders})`;
const selectVersions = `
  select run_id, mode, status, executor_session_id, coalesce(
    (select max(run_id) from runs before where before.session_id = runs.session_id and before.run_id < runs.run_id),
    (select max(run_id) from runs origin where origin.session_id = runs.forked_from and origin.run_id < runs.run_id)) as parent
  from runs where session_id = ? order by run_id desc limit 1000`;

export function* readSession(session_id: string): Work<Session | null> {
  const [row] = yield first(selectSession, toColumn(session_id));
  return row === undefined ? null : toSession(row);
}

/** Adds a condition only if it is set: no index helps with `or ? is null`. */
export function* readSessions(
  filter: SessionFilter,
  { before, limit }: { before?: string; limit: number },
): Work<Session[]> {
  const conditions = [
    ["agent_name = ?", filter.agent_name],
    ["created_by = ?", filter.created_by],
    [
      buildSuffixCondition("sessions", "session_id"),
      filter.id_suffix === undefined ? undefined : `%${filter.id_suffix}`,
    ],
    ["session_id < ?", before],
  ].filter((pair): pair is [string, string] => pair[1] !== undefined);
  const where = conditions.length === 0 ? "" : `where ${conditions.map(([condition]) => condition).join(" and ")}`;
  const text = `${selectSessions} ${where} order by session_id desc limit ?`;
  return (yield all(text, ...conditions.map(([, value]) => toColumn(value)), limit)).map(toSession);
}

export function* readForks(session_id: string, limit: number): Work<Session[]> {
  const text = `${selectSessions} where forked_from = ? and forked_from is not null order by session_id limit ?`;
  return (yield all(text, toColumn(session_id), limit)).map(toSession);
}

export function* readVersions(session_id: string): Work<SessionVersion[]> {
  const rows = yield all(selectVersions, toColumn(session_id));
  return rows.map((row) => ({
    run_id: fromColumn(String(row["run_id"])),
    // Only these values are ever written.
    mode: row["mode"] as SessionVersion["mode"],
    status: row["status"] as SessionVersion["status"],
    parent: textOrNull(row["parent"]),
    executor_session_id: textOrNull(row["executor_session_id"]),
  }));
}

export function* readDeletedSessions(session_ids: readonly string[]): Work<string[]> {
  const existing = new Set<string>();
  for (const batch of batchIds(session_ids))
    for (const row of yield all(selectExisting, ...batch)) existing.add(fromColumn(String(row["session_id"])));
  return session_ids.filter((session_id) => !existing.has(session_id));
}

function toSession(row: Row): Session {
  return {
    session_id: fromColumn(String(row["session_id"])),
    executor_session_id: textOrNull(row["executor_session_id"]),
    agent_name: fromColumn(String(row["agent_name"])),
    created_by: fromColumn(String(row["created_by"])),
    hostname: textOrNull(row["hostname"]),
    executor_profile: textOrNull(row["executor_profile"]),
    place_id: textOrNull(row["place_id"]),
    runner_id: textOrNull(row["runner_id"]),
    portable: row["portable"] === 1,
    runner_dir: textOrNull(row["runner_dir"]),
    project_dir: textOrNull(row["project_dir"]),
    run_count: Number(row["run_count"]),
    created_at: fromColumn(String(row["created_at"])),
    last_used_at: fromColumn(String(row["last_used_at"])),
    forked_from: textOrNull(row["forked_from"]),
    fork_at_turn: row["fork_at_turn"] === null ? null : Number(row["fork_at_turn"]),
  };
}
