import type { Store } from "../model/store.ts";
import { faultOf, type SubmitFault } from "./submit-fault.ts";

/** How many runs may stand above a run. An agent that calls itself ends here, instead of never. */
const deepest = 8;

/** null: the run may be a child of this one. */
export async function tooDeep(
  parent_run_id: string | undefined,
  read: Pick<Store["read"], "run">,
): Promise<SubmitFault | null> {
  let above = 0;
  for (let next: string | null = parent_run_id ?? null; next !== null; above += 1) {
    if (above === deepest)
      return faultOf(
        409,
        "DROVER-SUB-007",
        `More than ${deepest} runs would stand above this one, each started by the one before.`,
        [{ path: "body.parent_run_id", message: "nested too deep" }],
        "Return a result to the run above instead of starting another run.",
      );
    next = (await read.run(next))?.parent_run_id ?? null;
  }
  return null;
}
