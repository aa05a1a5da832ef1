import { expect, it, vi } from "vitest";
import { recordDirectory } from "./model/state-layout.ts";
import { buildFinish, sampleRun } from "../test/fixtures/record/sample.ts";
import { startTestCoordinator } from "../test/coordinator.ts";
import { openStore } from "./record/open.ts";
import { first } from "./record/query.ts";

it("stops without waiting until retention has removed all expired runs", async () => {
  const runCount = 3000;
  // All ended runs are older than this limit.
  const coordinator = await startTestCoordinator({ retention: { runs_days: 1e-9 }, retentionEveryMs: 200 });
  const { store } = coordinator;
  const count = (): Promise<number> =>
    store.engine.read(function* () {
      const [row] = yield first("select count(*) as n from runs where run_id < 'g'");
      return Number(row?.["n"]);
    });
  try {
    const runs = Array.from({ length: runCount }, () => sampleRun());
    await store.apply(runs.map((run) => ({ op: "create_run", run, events: [] })));
    await store.apply(runs.map(({ run_id }) => buildFinish(run_id)));
    await vi.waitFor(async () => expect(await count()).toBeLessThan(runCount), { timeout: 60_000, interval: 1 });
    expect(await count()).toBeGreaterThan(runCount / 2);
    await coordinator.stop();
    const reopenedStore = await openStore({
      directory: recordDirectory(coordinator.directory),
      now: () => new Date(),
      mode: "read",
    });
    expect((await reopenedStore.read.runs({}, { limit: runCount })).length).toBeGreaterThan(runCount / 4);
    await reopenedStore.close();
    expect(coordinator.defects).toEqual([]);
  } finally {
    await coordinator.dispose();
  }
});
