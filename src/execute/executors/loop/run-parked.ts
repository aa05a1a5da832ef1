import type { Parked } from "../../../model/executor.ts";

/** Thrown to suspend the run. It continues later from the last saved state. */
export class RunParked extends Error {
  override readonly name = "RunParked";
  readonly outcome: Parked;
  constructor(parked: Omit<Parked, "status">) {
    super(parked.message);
    this.outcome = { status: "parked", ...parked };
  }
}
