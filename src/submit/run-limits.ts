import { isTerminal, runStatuses } from "../model/states.ts";
import type { Store } from "../model/store.ts";
import { submitFault, type SubmitFault } from "./submit-fault.ts";

/** How many runs may stand above a run. An agent that calls itself ends here, instead of never. */
const deepest = 8;
/** How many runs that a run has started may be unfinished at once. */
const mostChildren = 100;
const unfinished = runStatuses.filter((status) => !isTerminal(status));

/** null: the run may be a child of this one. `inside`: a command of it asks. */
export async function checkRunLimits(
  parent_run_id: string | undefined,
  inside: boolean,
  read: Pick<Store["read"], "run_row" | "runs">,
): Promise<SubmitFault | null> {
  const deep = await tooDeep(parent_run_id, read);
  if (deep !== null || !inside || parent_run_id === undefined) return deep;
  const children = await read.runs({ parent_run_id, status: unfinished }, { limit: mostChildren });
  if (children.length < mostChildren) return null;
  return submitFault(
    409,
    "DROVER-SUB-009",
    `This run has started ${mostChildren} runs that have not ended, and cannot start another one now.`,
    [{ path: "body.parent_run_id", message: "has too many unfinished runs" }],
    "Wait for some to end, then start the next.",
  );
}

async function tooDeep(
  parent_run_id: string | undefined,
  read: Pick<Store["read"], "run_row">,
): Promise<SubmitFault | null> {
  let above = 0;
  for (let next: string | null = parent_run_id ?? null; next !== null; above += 1) {
    if (above === deepest)
      return submitFault(
        409,
        "DROVER-SUB-007",
        `More than ${deepest} runs would stand above this one, each started by the one before.`,
        [{ path: "body.parent_run_id", message: "nested too deep" }],
        "Return a result to the run above instead of starting another run.",
      );
    next = (await read.run_row(next))?.parent_run_id ?? null;
  }
  return null;
}
