import { hasEnded, runStatuses } from "../model/states.ts";
import type { Store } from "../model/store.ts";
import { buildSubmitFault, type SubmitFault } from "./submit-fault.ts";

/** How many ancestors a run may have. Stops an agent that keeps calling itself. */
const maxAncestors = 8;
/** How many unfinished child runs a run may have. */
const maxChildren = 100;
const unfinishedStatuses = runStatuses.filter((status) => !hasEnded(status));

/** Returns null if a new run may be a child of this run. `isInsideRun` means that a command of the parent run submits it. */
export async function checkRunLimits(
  parent_run_id: string | undefined,
  isInsideRun: boolean,
  read: Pick<Store["read"], "run_row" | "runs">,
): Promise<SubmitFault | null> {
  const nestingFault = await checkNesting(parent_run_id, read);
  if (nestingFault !== null || !isInsideRun || parent_run_id === undefined) return nestingFault;
  const children = await read.runs({ parent_run_id, status: unfinishedStatuses }, { limit: maxChildren });
  if (children.length < maxChildren) return null;
  return buildSubmitFault(
    409,
    "DROVER-SUB-009",
    `This run has ${maxChildren} unfinished child runs and cannot start another one now.`,
    [{ path: "body.parent_run_id", message: "has too many unfinished runs" }],
    "Wait until some of them have finished, then start the next.",
  );
}

async function checkNesting(
  parent_run_id: string | undefined,
  read: Pick<Store["read"], "run_row">,
): Promise<SubmitFault | null> {
  let ancestors = 0;
  for (let next: string | null = parent_run_id ?? null; next !== null; ancestors += 1) {
    if (ancestors === maxAncestors)
      return buildSubmitFault(
        409,
        "DROVER-SUB-007",
        `Runs can be nested at most ${maxAncestors} levels deep, and this run would exceed that.`,
        [{ path: "body.parent_run_id", message: "nested too deeply" }],
        "Return a result to the parent run instead of starting another run.",
      );
    next = (await read.run_row(next))?.parent_run_id ?? null;
  }
  return null;
}
