import type { BindSession, DeleteSession, SessionResult } from "../../model/session.ts";
import { first, write, type Work } from "../query.ts";
import { statusIn } from "../moves/statuses.ts";
import { toColumn } from "../text.ts";
import { deleteSessionState } from "./save-session.ts";
import type { Transaction } from "../transaction.ts";

const selectBinding = `select executor_session_id from sessions where session_id = ?`;
const bind = `update sessions set executor_session_id = ?, last_used_at = ? where session_id = ?`;
const deleteRow = `delete from sessions where session_id = ?`;
const selectBusy = `
  select 1 from runs where session_id = ? and agent_rev_id is not null and ${statusIn("open")} limit 1`;
/** An open fork reads this session in every attempt. */
const selectFork = `
  select 1 from runs where forked_from = ? and forked_from is not null
    and ${statusIn("open")} limit 1`;

export function* bindSessionId(tx: Transaction, op: BindSession): Work<SessionResult> {
  const [row] = yield first(selectBinding, toColumn(op.session_id));
  if (row === undefined) return { ok: false, conflict: "not_found" };
  const executorSessionId = toColumn(op.executor_session_id);
  if (row["executor_session_id"] === executorSessionId) return { ok: true, op: "bind_session" };
  if (row["executor_session_id"] !== null) return { ok: false, conflict: "bound_otherwise" };
  yield write(bind, executorSessionId, tx.now.toISOString(), toColumn(op.session_id));
  return { ok: true, op: "bind_session" };
}

export function* deleteSession(op: DeleteSession): Work<SessionResult> {
  const session = toColumn(op.session_id);
  if (!(yield* sessionExists(session))) return { ok: false, conflict: "not_found" };
  if (yield* isSessionBusy(session)) return { ok: false, conflict: "busy" };
  const [fork] = yield first(selectFork, session);
  if (fork !== undefined) return { ok: false, conflict: "busy" };
  yield write(deleteRow, session);
  yield* deleteSessionState(session);
  return { ok: true, op: "delete_session" };
}

/** `session` is the encoded id. */
export function* sessionExists(session: string): Work<boolean> {
  const [row] = yield first(selectBinding, session);
  return row !== undefined;
}

export function* isSessionBusy(session: string): Work<boolean> {
  const [row] = yield first(selectBusy, session);
  return row !== undefined;
}
