/** Why a request to a runner port failed. The runner handles each case differently. */
export type PortConflict =
  /** No response, a timeout or a server error. Retry later; nothing is lost. */
  | "away"
  /** The server did not prove that it knows this runner's token, so nothing was sent. Retry later. */
  | "unproven"
  /** A newer registration of the same runner replaced this one. Stop. */
  | "old_epoch"
  /** The coordinator does not know this runner. Register again. */
  | "unknown_runner"
  /** Another live runner has this identity. Stop. */
  | "duplicate_runner"
  /** The token is not accepted, or not for this runner. Stop and notify the operator. */
  | "unauthorized"
  /** The request or the protocol version is invalid. Retrying does not help. */
  | "refused";

/** The error that a RunnerPort rejects with. */
export class PortError extends Error {
  override readonly name = "PortError";
  readonly conflict: PortConflict;
  constructor(conflict: PortConflict, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.conflict = conflict;
  }
}
