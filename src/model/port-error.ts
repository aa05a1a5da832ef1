/** Why a runner port refused. A runner reacts to each of them differently. */
export type PortConflict =
  /** Nobody answered, or not in time, or with a server's own fault: ask again later, nothing is lost. */
  | "away"
  /** The program that answered has not proved that it knows this runner's token, so nothing was sent to it. Ask again later. */
  | "unproven"
  /** This registration was replaced by a newer one of the same runner: stop. */
  | "old_epoch"
  /** The other side does not know (or has forgotten) this runner: register again. */
  | "unknown_runner"
  /** Another live runner has this identity: stop. */
  | "duplicate_runner"
  /** The token is not accepted, or not for this runner: stop and tell the operator. */
  | "unauthorized"
  /** The request itself is at fault, or the protocol's version: asking again will not help. */
  | "refused";

/** What a RunnerPort rejects with. */
export class PortError extends Error {
  override readonly name = "PortError";
  readonly conflict: PortConflict;
  constructor(conflict: PortConflict, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.conflict = conflict;
  }
}
