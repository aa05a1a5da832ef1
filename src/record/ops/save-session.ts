import {
  isPartPath,
  isWorkPath,
  maxSaveBytes,
  maxSessionFileBytes,
  maxStoredFiles,
  maxStateBytes,
  maxWholeStateBytes,
} from "../../model/session-state.ts";
import type { SaveResult, SaveSession } from "../../model/session-state-ops.ts";
import { hasEnded } from "../../model/states.ts";
import { first, write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { findWrittenRun, type StoredRun } from "../moves/stored-run.ts";
import { recordEvents } from "./append-events.ts";
import { auditRefused, isFenced } from "./fence.ts";
import { findSpentBudget } from "./spending.ts";
import { selectNewEvents } from "./store-events.ts";

const selectSaved = `select run_id, attempt, n from session_states where session_id = ?`;
const upsertState = `
  insert into session_states (session_id, run_id, attempt, n, format, portable, runner_id, place_id, saved_at, bytes)
  values (?1, ?2, ?3, ?4, ?5, ?6, ?7, (select place_id from runners where runner_id = ?7), ?8, ?9)
  on conflict (session_id) do update set run_id = excluded.run_id, attempt = excluded.attempt, n = excluded.n,
    format = excluded.format, portable = excluded.portable, runner_id = excluded.runner_id,
    place_id = excluded.place_id, saved_at = excluded.saved_at, bytes = excluded.bytes`;
const upsertFile = `
  insert into session_files (session_id, path, type, bytes) values (?, ?, ?, ?)
  on conflict (session_id, path) do update set type = excluded.type, bytes = excluded.bytes`;
const deleteFile = `delete from session_files where session_id = ? and path = ?`;
const sumFiles = `
  select coalesce(sum(length(bytes)), 0) as size, count(*) as files from session_files where session_id = ?`;
const deleteState = `delete from session_states where session_id = ?`;
const deleteFiles = `delete from session_files where session_id = ?`;
/** Parts of the state have paths that begin with a slash, unlike work files. */
const deleteWorkFiles = `delete from session_files where session_id = ? and path not like '/%'`;

/** Stores the state together with the events it covers, so that neither gets ahead of the other. */
export function* saveSession(tx: Transaction, op: SaveSession): Work<SaveResult> {
  const run = yield* findWrittenRun(op.run_id);
  if (run === null || run.session_id === null) return { ok: false, conflict: "fenced", last_n: 0 };
  if (isFenced(run, op) || hasEnded(run.status)) {
    auditRefused(tx, run, op);
    return { ok: false, conflict: "fenced", last_n: run.last_n };
  }
  const newEvents = selectNewEvents(op.events, run.last_n);
  if (newEvents === null || op.n > (newEvents.at(-1)?.n ?? run.last_n))
    return { ok: false, conflict: "gap", last_n: run.last_n };
  if (yield* isTooLarge(run.session_id, op)) return { ok: false, conflict: "too_large", last_n: run.last_n };
  if (newEvents.length > 0) yield* recordEvents(tx, run, newEvents, op);
  const { bytes } = op;
  // A save that covers no events has only parts. A part is named by its content, so it never replaces another one, and an
  // unused part does no harm.
  const isPartial = bytes === null && op.n === 0;
  if (isPartial || !(yield* isOvertaken(run, run.session_id, op))) {
    if (bytes !== null) yield* storeState(tx, run, run.session_id, { ...op, bytes });
    yield* storeFiles(run.session_id, op);
  }
  const spent = (yield* findSpentBudget(tx, run)) === null ? {} : { budget: "spent" as const };
  return { ok: true, op: "save_session", last_n: run.last_n, ...spent };
}

/** A replaced file counts twice here, so the limits are twice those of the runners. */
function* isTooLarge(session: string, { bytes, files, all_files }: SaveSession): Work<boolean> {
  const uploads = files.filter((file) => file.type !== null);
  const uploadedBytes = uploads.reduce((sum, file) => sum + file.bytes.length, 0);
  const state = bytes?.length ?? 0;
  if (state > maxStateBytes || state + uploadedBytes > maxSaveBytes) return true;
  if (uploads.length === 0 || all_files === true) return false;
  const [row] = yield first(sumFiles, session);
  return (
    Number(row?.["size"]) + uploadedBytes > 2 * (maxSessionFileBytes + maxWholeStateBytes) ||
    Number(row?.["files"]) + uploads.length > maxStoredFiles
  );
}

/** A repeated or late save must not replace a newer one of the same attempt. */
function* isOvertaken(run: StoredRun, session: string, { n }: SaveSession): Work<boolean> {
  const [saved] = yield first(selectSaved, session);
  return (
    saved !== undefined &&
    saved["run_id"] === toColumn(run.run_id) &&
    Number(saved["attempt"]) === run.attempt &&
    Number(saved["n"]) > n
  );
}

type SaveWithState = SaveSession & { bytes: Uint8Array };

function* storeState(tx: Transaction, run: StoredRun, session: string, op: SaveWithState): Work<void> {
  const columns = [session, toColumn(run.run_id), run.attempt, op.n, toColumn(op.format), op.portable ? 1 : 0];
  yield write(upsertState, ...columns, run.runner_id, tx.now.toISOString(), op.bytes);
}

function* storeFiles(session: string, op: SaveSession): Work<void> {
  if (op.all_files === true) yield write(deleteWorkFiles, session);
  for (const file of op.files) {
    if (!isWorkPath(file.path) && !isPartPath(file.path)) continue;
    if (file.type === null) yield write(deleteFile, session, toColumn(file.path));
    else yield write(upsertFile, session, toColumn(file.path), file.type, file.bytes);
  }
}

const selectPortable = `select portable from session_states where session_id = ?`;

/** `session` is the encoded id. */
export function* isPortable(session: string): Work<boolean> {
  const [row] = yield first(selectPortable, session);
  return row?.["portable"] === 1;
}

export function* deleteSessionState(session: string): Work<void> {
  yield write(deleteState, session);
  yield write(deleteFiles, session);
}
