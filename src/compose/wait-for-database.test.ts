import { afterEach, beforeEach, expect, it } from "vitest";
import { startTestCoordinator } from "../../test/coordinator.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";
import { reservePort } from "../../test/reserve-port.ts";

let database: FreshDatabase;
beforeEach(async () => void (database = await freshDatabase()));
afterEach(() => database.drop());

/** Starts and stops a coordinator. Returns the reports of an unreachable database, and the error. */
async function start(url: string, waitMs: number) {
  const away: string[] = [];
  const started = startTestCoordinator({
    database: { url, secret: new Uint8Array(32).fill(7) },
    databaseWaitMs: waitMs,
    onDatabaseUnreachable: ({ code }) => away.push(code),
  });
  const fault: unknown = await started.then(
    ({ dispose }) => dispose(),
    (error: unknown) => error,
  );
  return { away, fault };
}

it("waits for an unreachable database up to the limit, and reports it once", async () => {
  const url = new URL(database.url);
  url.port = String(await reservePort());
  expect(await start(url.href, 1500)).toMatchObject({ away: ["DROVER-STA-008"], fault: { code: "DROVER-STA-008" } });
  expect(await start(url.href, 0)).toMatchObject({ away: [], fault: { code: "DROVER-STA-008" } });
});

it("does not wait for a database that answers", async () => {
  expect(await start(database.url, 60_000)).toEqual({ away: [], fault: undefined });
  const url = new URL(database.url);
  url.password = "guessed";
  expect(await start(url.href, 60_000)).toMatchObject({ away: [], fault: { code: "DROVER-STA-006" } });
});
