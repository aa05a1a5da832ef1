import { expect, it, vi } from "vitest";
import { recordDirectory } from "./model/state-layout.ts";
import { buildFinish, sampleRun } from "../test/fixtures/record/sample.ts";
import { startTestCoordinator } from "../test/coordinator.ts";
import { openStore } from "./record/open.ts";
import { first } from "./record/query.ts";

it("stops while retention still has much to remove, and leaves the rest to the next start", async () => {
  const many = 3000;
  // All ended runs are older than this.
  const coordinator = await startTestCoordinator({ retention: { runs_days: 1e-9 }, retentionEveryMs: 200 });
  const { store } = coordinator;
  const count = (): Promise<number> =>
    store.engine.read(function* () {
      const [row] = yield first("select count(*) as n from runs where run_id < 'g'");
      return Number(row?.["n"]);
    });
  try {
    const runs = Array.from({ length: many }, () => sampleRun());
    await store.apply(runs.map((run) => ({ op: "create_run", run, events: [] })));
    await store.apply(runs.map(({ run_id }) => buildFinish(run_id)));
    await vi.waitFor(async () => expect(await count()).toBeLessThan(many), { timeout: 60_000, interval: 1 });
    expect(await count()).toBeGreaterThan(many / 2);
    await coordinator.stop();
    const again = await openStore({
      directory: recordDirectory(coordinator.directory),
      now: () => new Date(),
      mode: "read",
    });
    expect((await again.read.runs({}, { limit: many })).length).toBeGreaterThan(many / 4);
    await again.close();
    expect(coordinator.defects).toEqual([]);
  } finally {
    await coordinator.dispose();
  }
});
