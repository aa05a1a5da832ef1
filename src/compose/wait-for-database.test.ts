import { afterEach, beforeEach, expect, it } from "vitest";
import { startTestCoordinator } from "../../test/coordinator.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";
import { reservePort } from "../../test/reserve-port.ts";

let database: FreshDatabase;
beforeEach(async () => void (database = await freshDatabase()));
afterEach(() => database.drop());

/** A coordinator on that database; those that it was told to be away. */
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

it("waits for a database that is away no longer than it was told, and says once that it does", async () => {
  const url = new URL(database.url);
  url.port = String(await reservePort());
  expect(await start(url.href, 1500)).toMatchObject({ away: ["DROVER-STA-008"], fault: { code: "DROVER-STA-008" } });
  expect(await start(url.href, 0)).toMatchObject({ away: [], fault: { code: "DROVER-STA-008" } });
});

it("waits for none that answers", async () => {
  expect(await start(database.url, 60_000)).toEqual({ away: [], fault: undefined });
  const url = new URL(database.url);
  url.password = "guessed";
  expect(await start(url.href, 60_000)).toMatchObject({ away: [], fault: { code: "DROVER-STA-006" } });
});
