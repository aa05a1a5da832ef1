import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { drive } from "../../test/fixtures/dispatch/drive.ts";
import { emptyRecord } from "../../test/postgres/empty-record.ts";
import type { Op } from "../model/store.ts";
import { openStore } from "../record/open.ts";
import { openPostgresStore } from "../record/postgres/open.ts";
import type { RecordStore } from "../record/record-store.ts";
import { createDispatcher } from "./dispatcher.ts";

const now = (): Date => new Date();

/** By their own clocks, which a dispatcher goes by. */
const engines: Record<string, () => Promise<RecordStore>> = {
  async SQLite() {
    const directory = mkdtempSync(join(tmpdir(), "drover-calm-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    return openStore({ directory, now, createIfMissing: true });
  },
  async PostgreSQL() {
    const secret = Buffer.alloc(32, 7);
    const database = await emptyRecord(secret);
    onTestFinished(() => database.drop());
    return openPostgresStore({ url: database.url, secret });
  },
};

test.each(Object.keys(engines))(
  "on %s nothing is written while nothing is due, and what is due is done",
  async (name) => {
    const store = await engines[name]!();
    let looks = 0;
    const applied: Op["op"][] = [];
    const apply: RecordStore["apply"] = (ops) => {
      applied.push(...ops.map(({ op }) => op));
      return store.apply(ops);
    };
    const due: RecordStore["read"]["due"] = (asked) => {
      looks += 1;
      return store.read.due(asked);
    };
    const dispatcher = createDispatcher({
      store: { ...store, apply, read: { ...store.read, due } },
      now,
      // of which an eighth is much longer than this test
      leaseMs: 3_600_000,
      pollHoldMs: 5000,
      rescueEveryMs: 5,
      unmatchedMs: 3_600_000,
      signAttempt: () => "",
    });
    onTestFinished(async () => {
      await dispatcher.stop();
      await store.close();
    });
    await dispatcher.start();
    await expect.poll(() => looks).toBeGreaterThan(5);
    expect(applied).toEqual(["forgive_outage", "rescue"]);

    const d = drive(store, now, 50);
    const runner = await d.register("r");
    const run_id = await d.submit();
    expect(await d.claim(runner)).toEqual([run_id]);
    await expect.poll(async () => (await store.read.runner("r"))?.status, { timeout: 10_000 }).toBe("lost");
    await expect.poll(() => d.statuses(run_id), { timeout: 10_000 }).not.toEqual(["claimed"]);
    const calm = applied.length;
    const after = looks;
    await expect.poll(() => looks).toBeGreaterThan(after + 5);
    expect(applied.length).toBeLessThanOrEqual(calm + 1);
  },
);
