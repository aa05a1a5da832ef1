import type { RunContext } from "../../model/executor.ts";

/** Progress goes forward only: what is less than was told before is told as that. */
export function createProgress(emit: RunContext["emit"]) {
  let told = 0;
  return async (percent: number, message?: string): Promise<void> => {
    if (Number.isFinite(percent)) told = Math.max(told, Math.min(100, Math.max(0, percent)));
    await emit({ type: "progress", percent: told, ...(message === undefined ? {} : { message }) });
  };
}
