import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../test/coordinator.ts";
import { type FreshDatabase, freshDatabase } from "../test/postgres/fresh-database.ts";
import { connect } from "./record/postgres/connection.ts";

const dayMs = 86_400_000;
const realNow = Date.now;
let database: FreshDatabase;
let coordinator: TestCoordinator;

beforeEach(async () => {
  database = await freshDatabase();
  coordinator = await startTestCoordinator({
    database: { url: database.url, secret: randomBytes(32) },
    retention: { runs_days: 30 },
    retentionEveryMs: 50,
  });
  await coordinator.client.agents.put("worker", { command: "true" });
  vi.useFakeTimers({ toFake: ["Date"] });
});
afterEach(async () => {
  vi.useRealTimers();
  await coordinator.dispose();
  await database.drop();
  expect(coordinator.defects).toEqual([]);
});

test("dates runs by the clock of the database, not by its own", async () => {
  for (const dayOffset of [-3, 3]) {
    vi.setSystemTime(realNow() + dayOffset * dayMs);
    const { run_id } = await coordinator.client.submit({ agent_name: "worker" });
    const { created_at } = await coordinator.client.runs.get(run_id);
    expect(Math.abs(Date.parse(created_at) - realNow())).toBeLessThan(dayMs);
  }
});

test("does not remove runs too early if its own clock is far ahead", async () => {
  const createEndedRun = async () => {
    const { run_id } = await coordinator.client.submit({ agent_name: "worker" });
    await coordinator.client.runs.stop(run_id);
    return run_id;
  };
  const recentRun = await createEndedRun();
  const agedRun = await createEndedRun();
  // Retention never removes the run with the newest event, so this run protects the others.
  await createEndedRun();
  vi.setSystemTime(realNow() + 400 * dayMs);
  // Retention removes this run by any clock, which shows that retention has run.
  const oldRunId = "00dc0000-0000-7000-8000-000000000001";
  const client = await connect(database.url);
  await client.exec(
    `update runs set run_id = '${oldRunId}', finished_at = '2001-01-01T00:00:00.000Z' where run_id = '${agedRun}'`,
  );
  client.end();
  const { runs } = coordinator.client;
  const listStoredRuns = async () => (await runs.list({ limit: 10 })).items.map(({ run_id }) => run_id);
  expect(await listStoredRuns()).toContain(recentRun);
  await expect.poll(listStoredRuns).not.toContain(oldRunId);
  expect(await listStoredRuns()).toContain(recentRun);
});
