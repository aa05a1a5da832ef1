import type { RunContext } from "../../model/executor.ts";

/** Progress never decreases: a lower value is reported as the highest so far. */
export function createProgress(emit: RunContext["emit"]) {
  let highest = 0;
  return async (percent: number, message?: string): Promise<void> => {
    if (Number.isFinite(percent)) highest = Math.max(highest, Math.min(100, Math.max(0, percent)));
    await emit({ type: "progress", percent: highest, ...(message === undefined ? {} : { message }) });
  };
}
