import { expect, it } from "vitest";
import { openHost, createManualClock } from "../../test/fixtures/dispatch/host.ts";
import { pruneDispatch } from "./retention-dispatch.ts";

it("removes old ended runs and the data that only they used, so that their idempotency keys can be reused", async () => {
  const clock = createManualClock(Date.now());
  const host = await openHost({ clock });
  try {
    const old = await host.ask({ idempotency_key: "k" });
    const waiting = await host.run(await host.submit());
    if (!old.ok) throw new Error(old.fault.message);
    await host.dispatcher.stopRuns([old.run.run_id], "ann");
    clock.advance(10_000);
    // Retention keeps the run with the newest event at any age, so this one is created last.
    const recentRun = await host.run(await host.submit());
    expect(await pruneDispatch(host.store, clock.now())).toEqual({ runs: 1, sessions: 1 });
    expect(await host.store.read.run(old.run.run_id)).toBeNull();
    expect(await host.store.read.session(old.run.session_id ?? "")).toBeNull();
    for (const run of [waiting, recentRun]) expect(await host.store.read.session(run.session_id ?? "")).not.toBeNull();
    expect(await host.ask({ idempotency_key: "k" })).toMatchObject({ ok: true, repeated: false });
  } finally {
    await host.close();
    await host.dispose();
  }
});
