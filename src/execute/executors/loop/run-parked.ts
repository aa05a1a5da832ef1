import type { Parked } from "../../../model/executor.ts";

/** Thrown to end the run for now: it continues from the state that was saved last. */
export class RunParked extends Error {
  override readonly name = "RunParked";
  readonly outcome: Parked;
  constructor(parked: Omit<Parked, "status">) {
    super(parked.message);
    this.outcome = { status: "parked", ...parked };
  }
}
