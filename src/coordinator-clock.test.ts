import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../test/coordinator.ts";
import { type FreshDatabase, freshDatabase } from "../test/postgres/fresh-database.ts";
import { connect } from "./record/postgres/connection.ts";

const day = 86_400_000;
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

test("uses the database's clock for the age of a run", async () => {
  for (const off of [-3, 3]) {
    vi.setSystemTime(realNow() + off * day);
    const { run_id } = await coordinator.client.submit({ agent_name: "worker" });
    const { created_at } = await coordinator.client.runs.get(run_id);
    expect(Math.abs(Date.parse(created_at) - realNow())).toBeLessThan(day);
  }
});

test("does not prune too early if its clock is far ahead", async () => {
  const ended = async () => {
    const { run_id } = await coordinator.client.submit({ agent_name: "worker" });
    await coordinator.client.runs.stop(run_id);
    return run_id;
  };
  const kept = await ended();
  const aged = await ended();
  // The run with the newest event always stays.
  await ended();
  vi.setSystemTime(realNow() + 400 * day);
  // Retention removes this one by any clock, which shows that it has run.
  const old = "00dc0000-0000-7000-8000-000000000001";
  const client = await connect(database.url);
  await client.exec(
    `update runs set run_id = '${old}', finished_at = '2001-01-01T00:00:00.000Z' where run_id = '${aged}'`,
  );
  client.end();
  const { runs } = coordinator.client;
  const stored = async () => (await runs.list({ limit: 10 })).items.map(({ run_id }) => run_id);
  expect(await stored()).toContain(kept);
  await expect.poll(stored).not.toContain(old);
  expect(await stored()).toContain(kept);
});
