import { expect, it } from "vitest";
import { openHost } from "../../test/fixtures/dispatch/host.ts";
import { createDispatcher } from "./dispatcher.ts";

it("stops many runs in batches of fifty, so that other writers do not wait for all of them", async () => {
  const host = await openHost();
  const sizes: number[] = [];
  const apply: typeof host.store.apply = (ops) => {
    for (const op of ops) if (op.op === "stop_runs") sizes.push(op.run_ids.length);
    return host.store.apply(ops);
  };
  const dispatcher = createDispatcher({
    store: { ...host.store, apply },
    now: () => new Date(),
    leaseMs: 10_000,
    pollHoldMs: 5000,
    rescueEveryMs: 1000,
    unmatchedMs: 300_000,
    signAttempt: () => "",
  });
  try {
    const runs = [];
    for (let i = 0; i < 120; i += 1) runs.push(await host.submit());
    expect(await dispatcher.stopRuns([...runs, "nobody's"], "ann")).toEqual({
      cancelled: runs,
      stopping: [],
      untouched: ["nobody's"],
    });
    expect(sizes).toEqual([50, 50, 21]);
  } finally {
    await dispatcher.stop();
    await host.close();
    await host.dispose();
  }
});
