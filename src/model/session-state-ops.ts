import type { RunnerIdentity } from "./dispatch-ops.ts";
import type { NumberedEvent } from "./event.ts";
import type { RemovedFile, SessionFile, SessionState } from "./session-state.ts";

/**
 * What an executor needs to continue a session: an opaque state under the name of its format, and the files of the
 * session's work directory. Both are kept in the record, so that any runner can continue it.
 */
export interface SaveSession {
  op: "save_session";
  run_id: string;
  attempt: number;
  runner: RunnerIdentity;
  /** The last event the state covers. */
  n: number;
  /** Events up to `n` that may not be stored yet: they are stored with the state, or neither is. */
  events: NumberedEvent[];
  format: string;
  /** null: only the files are stored, which are parts of a state that is saved next. */
  bytes: Uint8Array | null;
  /** Any runner can continue it: nothing it needs lies with the runner alone. */
  portable: boolean;
  files: (SessionFile | RemovedFile)[];
  /** These are all files of the work directory: others that were saved before are removed. */
  all_files?: boolean;
}

export type SaveResult =
  /** `budget`: what the run's agent may spend today is spent. */
  | { ok: true; op: "save_session"; last_n: number; budget?: "spent" }
  | { ok: false; conflict: "fenced" | "gap" | "too_large"; last_n: number };

export interface LoadedSession {
  /** null where files were asked for, or there is no state. */
  state: SessionState | null;
  files: SessionFile[];
  /** There are files after the last of these. */
  more: boolean;
}

export interface SessionStateReads {
  /** The state the run continues from: its session's, and of a fork that has none yet that of its origin. */
  session_state(
    of: { run_id: string; attempt: number; runner: RunnerIdentity },
    files_after?: string,
  ): Promise<LoadedSession | "fenced">;
}
