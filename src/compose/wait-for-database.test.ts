import { afterEach, beforeEach, expect, it } from "vitest";
import { startTestCoordinator } from "../../test/coordinator.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";
import { reservePort } from "../../test/reserve-port.ts";

let database: FreshDatabase;
beforeEach(async () => void (database = await freshDatabase()));
afterEach(() => database.drop());

/** Starts and stops a coordinator. Returns the reports of an unreachable database, and the error. */
async function start(url: string, waitMs: number) {
  const reports: string[] = [];
  const starting = startTestCoordinator({
    database: { url, secret: new Uint8Array(32).fill(7) },
    databaseWaitMs: waitMs,
    onDatabaseUnreachable: ({ code }) => reports.push(code),
  });
  const result: unknown = await starting.then(
    ({ dispose }) => dispose(),
    (error: unknown) => error,
  );
  return { reports, error: result };
}

it("waits for an unreachable database up to the limit, and reports it once", async () => {
  const url = new URL(database.url);
  url.port = String(await reservePort());
  expect(await start(url.href, 1500)).toMatchObject({ reports: ["DROVER-STA-008"], error: { code: "DROVER-STA-008" } });
  expect(await start(url.href, 0)).toMatchObject({ reports: [], error: { code: "DROVER-STA-008" } });
});

it("does not wait for a database that responds", async () => {
  expect(await start(database.url, 60_000)).toEqual({ reports: [], error: undefined });
  const url = new URL(database.url);
  url.password = "guessed";
  expect(await start(url.href, 60_000)).toMatchObject({ reports: [], error: { code: "DROVER-STA-006" } });
});
