import { afterEach, describe, expect, test } from "vitest";
import { randomBytes } from "node:crypto";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { claimOverHttp } from "../../test/fixtures/dispatch/claimed.ts";
import { emptyRecord } from "../../test/postgres/empty-record.ts";

describe.each(["sqlite", "postgres"] as const)("large stored values, on %s", (engine) => {
  let coordinator: TestCoordinator;
  let drop = async (): Promise<void> => undefined;
  const start = async (): Promise<void> => {
    if (engine === "sqlite") {
      coordinator = await startTestCoordinator({ leaseMs: 3_600_000 });
      return;
    }
    const secret = randomBytes(32);
    const database = await emptyRecord(secret);
    drop = () => database.drop();
    coordinator = await startTestCoordinator({ leaseMs: 3_600_000, database: { url: database.url, secret } });
  };
  afterEach(async () => {
    expect(coordinator.defects).toEqual([]);
    await coordinator.dispose();
    await drop();
  });

  test("pages of schedules with long prompts are shorter and contain each schedule once", async () => {
    await start();
    const { client } = coordinator;
    await client.agents.put("talker", { type: "autonomous" });
    const created: string[] = [];
    for (let index = 0; index < 6; index += 1) {
      const body = { agent_name: "talker", name: `s-${index}`, cron: "0 0 1 1 *", prompt: "x".repeat(200_000) };
      created.push((await client.schedules.create(body)).schedule_id);
    }
    const seen: string[] = [];
    let pages = 0;
    for (let cursor: string | null = ""; cursor !== null; pages += 1) {
      const page: Awaited<ReturnType<typeof client.schedules.list>> = await client.schedules.list({
        limit: 100,
        ...(cursor === "" ? {} : { cursor }),
      });
      expect(JSON.stringify(page).length).toBeLessThan(700_000);
      seen.push(...page.items.map(({ schedule_id }) => schedule_id));
      cursor = page.next_cursor;
    }
    expect([pages, seen.toSorted()]).toEqual([3, created.toSorted()]);
  });

  test("stores the start of a long failure message", async () => {
    await start();
    const run = await claimOverHttp(coordinator, "failing");
    const message = `${"m".repeat(9_999)}\u{1f600}${"n".repeat(500_000)}`;
    const outcome = { status: "failed", reason: "exit_nonzero", message, exit_code: 1 } as const;
    await run.report({ finishes: [{ run_id: run.run_id, attempt: 1, last_n: 0, outcome }] });
    run.port.close();
    const [listed] = (await coordinator.client.runs.list()).items;
    expect([listed?.status, listed?.error]).toEqual(["failed", `${"m".repeat(9_999)}…`]);
  });
});
