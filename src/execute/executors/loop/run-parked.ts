import type { ParkedOutcome } from "../../../model/executor.ts";

/** Thrown to suspend the run. It continues later from the last saved state. */
export class RunParked extends Error {
  override readonly name = "RunParked";
  readonly outcome: ParkedOutcome;
  constructor(parked: Omit<ParkedOutcome, "status">) {
    super(parked.message);
    this.outcome = { status: "parked", ...parked };
  }
}
