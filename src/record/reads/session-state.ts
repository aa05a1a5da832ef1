import { BugError } from "../../model/errors.ts";
import type { SessionFile } from "../../model/session-state.ts";
import type { LoadedSession, SessionStateReads } from "../../model/session-state-ops.ts";
import { hasEnded } from "../../model/states.ts";
import { findWrittenRun } from "../moves/stored-run.ts";
import { isFenced } from "../ops/fence.ts";
import { all, first, type Row, type SqlValue, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";

/** A fork without a state of its own uses the state of the session it was forked from. */
const fromRun = `
  runs join session_states saved on saved.session_id =
    coalesce((select own.session_id from session_states own where own.session_id = runs.session_id), runs.forked_from)`;
const selectState = `
  select saved.format, saved.bytes, saved.portable,
    case when saved.runner_id = holder.runner_id or saved.place_id = holder.place_id then 1 else 0 end as here
  from ${fromRun} join runners holder on holder.runner_id = runs.runner_id where runs.run_no = ?`;
const selectFiles = `
  select path, type, length(session_files.bytes) as size
  from ${fromRun} join session_files on session_files.session_id = saved.session_id
  where runs.run_no = ? and path > ? order by path limit ?`;
const selectFile = `
  select session_files.bytes from ${fromRun} join session_files on session_files.session_id = saved.session_id
  where runs.run_no = ? and path = ?`;

const maxFiles = 500;
const maxBytes = 8 * 1024 * 1024;

export function* readSessionState(
  attempt: Parameters<SessionStateReads["session_state"]>[0],
  files_after?: string,
): Work<LoadedSession | "fenced"> {
  const run = yield* findWrittenRun(attempt.run_id);
  if (run === null || hasEnded(run.status) || isFenced(run, { op: "load_session", ...attempt })) return "fenced";
  if (files_after !== undefined) return { state: null, ...(yield* readFiles(run.run_no, files_after)) };
  const [row] = yield first(selectState, run.run_no);
  const state =
    row === undefined
      ? null
      : {
          format: fromColumn(String(row["format"])),
          bytes: getBytes(row),
          portable: row["portable"] === 1,
          here: row["here"] === 1,
        };
  return { state, files: [], more: false };
}

/**
 * Returns one page of files, so that the response stays below its size limit. A page holds at least one file, if any are
 * left.
 */
function* readFiles(run_no: number, after: string): Work<Omit<LoadedSession, "state">> {
  const rows = yield all(selectFiles, run_no, toColumn(after), maxFiles);
  const files: SessionFile[] = [];
  let bytes = 0;
  for (const row of rows) {
    bytes += Number(row["size"]);
    if (files.length > 0 && bytes > maxBytes) break;
    const [content] = yield first(selectFile, run_no, row["path"] as SqlValue);
    // Only these values are ever written.
    const type = row["type"] as SessionFile["type"];
    files.push({ path: fromColumn(String(row["path"])), type, bytes: getBytes(content ?? {}) });
  }
  return { files, more: files.length < rows.length || rows.length === maxFiles };
}

function getBytes({ bytes }: Row): Uint8Array {
  if (bytes instanceof Uint8Array) return bytes;
  throw new BugError("a saved session's bytes column does not contain bytes");
}
