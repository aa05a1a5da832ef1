import type { RunnerIdentity } from "./dispatch-ops.ts";
import type { NumberedEvent } from "./event.ts";
import type { RemovedFile, SessionFile, SessionState } from "./session-state.ts";

/**
 * Saves what an executor needs to continue a session: an opaque state with the name of its format, and the files of the
 * session's work directory. Both are stored in the record, so that any runner can continue the session.
 */
export interface SaveSession {
  op: "save_session";
  run_id: string;
  attempt: number;
  runner: RunnerIdentity;
  /** The last event that the state covers. */
  n: number;
  /** Events up to `n` that may not be stored yet. They are stored together with the state, or neither is. */
  events: NumberedEvent[];
  format: string;
  /** null: store only the files, which are parts of the state in the next save. */
  bytes: Uint8Array | null;
  /** Whether any runner can continue the session, because nothing it needs is only on this runner. */
  portable: boolean;
  files: (SessionFile | RemovedFile)[];
  /** `files` is the complete work directory: remove all other files saved before. */
  all_files?: boolean;
}

export type SaveResult =
  /** `budget`: the agent's budget for today is used up. */
  | { ok: true; op: "save_session"; last_n: number; budget?: "spent" }
  | { ok: false; conflict: "fenced" | "gap" | "too_large"; last_n: number };

export interface LoadedSession {
  /** null if files were requested or there is no state. */
  state: SessionState | null;
  files: SessionFile[];
  /** More files follow. */
  more: boolean;
}

export interface SessionStateReads {
  /** The state that the run continues from: its session's or, for a new fork, the original session's. */
  session_state(
    of: { run_id: string; attempt: number; runner: RunnerIdentity },
    files_after?: string,
  ): Promise<LoadedSession | "fenced">;
}
