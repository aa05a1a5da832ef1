import { existsSync } from "node:fs";

/** Far longer than it takes on a busy machine: the Drover around a run is alive while the run is. */
const patienceMs = 60_000;
const lookEveryMs = 25;

/** The Drover around a run opens its socket a moment after the run has begun, and a busy one later. */
export async function waitForSocket(path: string): Promise<void> {
  const until = performance.now() + patienceMs;
  while (!existsSync(path) && performance.now() < until)
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
}
