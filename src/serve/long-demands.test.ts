import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";

/** Returns random text, because PostgreSQL compresses what it indexes. */
const randomText = (length: number): string => randomBytes(length).toString("hex").slice(0, length);

describe.each(["SQLite", "PostgreSQL"])("demands on %s", (engine) => {
  let database: FreshDatabase | null = null;
  let coordinator: TestCoordinator;
  beforeAll(async () => {
    if (engine === "PostgreSQL") database = await freshDatabase();
    coordinator = await startTestCoordinator(
      database === null ? {} : { database: { url: database.url, secret: randomBytes(32) } },
    );
    await coordinator.client.agents.put("work", { command: "true" });
  });
  afterAll(async () => {
    expect(coordinator.defects).toEqual([]);
    await coordinator.dispose();
    await database?.drop();
  });

  it.each([
    ["a hostname of 256 characters", { hostname: randomText(256) }],
    ["a project_dir of 4,097 characters", { project_dir: randomText(4097) }],
    ["a tag of 256 characters", { tags: [randomText(256)] }],
    ["65 tags", { tags: Array.from({ length: 65 }, (_, n) => `t${n}`) }],
  ])("are refused with %s, in a run and in an agent", async (_what, demands) => {
    const { client } = coordinator;
    const refused = { code: "DROVER-API-006" };
    await expect(client.submit({ agent_name: "work", demands })).rejects.toMatchObject(refused);
    await expect(client.agents.put("long", { command: "true", demands })).rejects.toMatchObject(refused);
  });

  it("are refused if the agent and the run have more than 64 tags together", async () => {
    const { client } = coordinator;
    const tags = (letter: string) => Array.from({ length: 40 }, (_, n) => `${letter}${n}`);
    await client.agents.put("tagged", { command: "true", demands: { tags: tags("a") } });
    const submitted = client.submit({ agent_name: "tagged", demands: { tags: tags("b") } });
    await expect(submitted).rejects.toMatchObject({ code: "DROVER-SUB-005" });
  });

  it("may be as long as the limits, and a page of such runs ends at half a megabyte", async () => {
    const { client, url, adminToken } = coordinator;
    const demands = () => ({
      project_dir: `/${randomText(4095)}`,
      tags: Array.from({ length: 64 }, () => randomText(255)),
    });
    const shared = demands();
    const created: string[] = [];
    for (let n = 0; n < 40; n += 1) {
      const run = await client.submit({ agent_name: "work", demands: n < 2 ? shared : demands() });
      created.push(run.run_id);
    }
    expect((await client.runs.get(created[1]!)).demands).toMatchObject({ project_dir: shared.project_dir });
    const headers = { authorization: `Bearer ${adminToken}` };
    const page = await (await fetch(`${url}/runs?limit=1000`, { headers })).text();
    expect(page.length).toBeLessThan(700_000);
    const seen: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const next = await client.runs.list({ limit: 1000, ...(cursor === undefined ? {} : { cursor }) });
      seen.push(...next.items.map(({ run_id }) => run_id));
      cursor = next.next_cursor;
    }
    expect(seen).toEqual(created.toReversed());
  });
});
