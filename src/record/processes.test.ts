import { expect, it } from "vitest";
import { workers, type Worker } from "../../test/fixtures/record/processes.ts";
import { scratchStores } from "../../test/fixtures/record/scratch.ts";
import { verifyAudit } from "./audit/verify.ts";
import type { SqliteStore } from "./open.ts";

const scratch = scratchStores();
const { start } = workers();

it("accepts writes from eight processes at once, some of them killed, and loses nothing it acknowledged", async () => {
  const directory = scratch.newDirectory();
  const steady = Array.from({ length: 5 }, (_, index) => start([directory, index + 1, 20]));
  const doomed = Array.from({ length: 3 }, () => start([directory, 4, 1_000_000]));
  for (const [index, worker] of doomed.entries()) void worker.waitForLines(20 + index * 20).then(() => worker.kill());
  expect(await Promise.all(steady.map((worker) => worker.ended))).toEqual([0, 0, 0, 0, 0]);
  expect(await Promise.all(doomed.map((worker) => worker.ended))).toEqual([null, null, null]);

  const store = await scratch.open(directory);
  for (const worker of [...steady, ...doomed]) await expectStored(store, worker);
  expect(steady.map((worker) => worker.lines.length)).toEqual([40, 80, 120, 160, 200]);
  const verified = await verifyAudit({ directory });
  expect(verified).toMatchObject({ ok: true });
  expect(verified.rows).toBeGreaterThanOrEqual(600);
});

it("has every acknowledged write after each of 8 kills", async () => {
  const directory = scratch.newDirectory();
  const killed: Worker[] = [];
  for (let round = 1; round <= 8; round += 1) {
    const worker = start([directory, 3, 1_000_000]);
    await worker.waitForLines(round * 2);
    worker.kill();
    expect(await worker.ended).toBeNull();
    expect(worker.lines.length).toBeGreaterThanOrEqual(round * 2);
    killed.push(worker);
    expect(await verifyAudit({ directory })).toMatchObject({ ok: true });
  }
  const store = await scratch.open(directory);
  for (const worker of killed) await expectStored(store, worker);
});

it("lets many processes create one store at the same time", async () => {
  const directory = scratch.newDirectory();
  const all = Array.from({ length: 8 }, () => start([directory, 1, 1]));
  const codes = await Promise.all(all.map((worker) => worker.ended));
  expect(all.flatMap(({ lines }) => lines.filter((line) => line.startsWith("failed")))).toEqual([]);
  expect(codes).toEqual(Array.from({ length: 8 }, () => 0));
  expect(await verifyAudit({ directory })).toMatchObject({ ok: true, rows: 16 });
});

async function expectStored(store: SqliteStore, worker: Worker): Promise<void> {
  for (const line of worker.lines) {
    const [change, id = ""] = line.split(" ");
    const run = await store.read.run(id);
    if (change === "finished") expect(run?.status, line).toBe("completed");
    else expect([change, run?.run_id]).toEqual(["created", id]);
  }
}
