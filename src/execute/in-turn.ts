import type { RunContext } from "../model/executor.ts";

/** Several streams, one log: an event waits until the one before it was taken. */
export function inTurn(emit: RunContext["emit"]): RunContext["emit"] {
  let last: Promise<void> = Promise.resolve();
  return (event) => {
    const taken = last.then(() => emit(event));
    // whoever sent it learns of its failure; the next one is not for that
    last = taken.catch(() => undefined);
    return taken;
  };
}
