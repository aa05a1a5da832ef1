import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, test } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { emptyRecord } from "../../test/postgres/empty-record.ts";
import { createHttpPort } from "../wire/http-port.ts";

const maxBytes = 1024 * 1024;
/** Long enough that these silent runners are never lost. */
const leaseMs = 3_600_000;

describe.each(["sqlite", "postgres"] as const)("lists of runners and their agents, on %s", (engine) => {
  let coordinator: TestCoordinator;
  let drop = async (): Promise<void> => undefined;
  const start = async (): Promise<void> => {
    if (engine === "sqlite") {
      coordinator = await startTestCoordinator({ leaseMs });
      return;
    }
    const secret = randomBytes(32);
    const database = await emptyRecord(secret);
    drop = () => database.drop();
    coordinator = await startTestCoordinator({ leaseMs, database: { url: database.url, secret } });
  };
  afterEach(async () => {
    expect(coordinator.defects).toEqual([]);
    await coordinator.dispose();
    await drop();
  });
  const register = async (name: string, token: string, changes: object): Promise<void> => {
    const port = createHttpPort({ url: coordinator.url, token });
    await port.register({ ...registration(`key of ${name}`), name, ...changes });
    port.close();
  };
  /** Returns the text of every page. */
  const readPages = async (path: string, token = coordinator.adminToken): Promise<string[]> => {
    const pages: string[] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const query: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const page = await rawCall(coordinator.url, {
        path: `${path}${query}`,
        headers: { authorization: `Bearer ${token}` },
      });
      expect(page.status).toBe(200);
      pages.push(page.text);
      cursor = (JSON.parse(page.text) as { next_cursor: string | null }).next_cursor;
    }
    return pages;
  };

  test("pages of large agents stay below 1 MB and contain each agent once, in order", async () => {
    await start();
    const description = "x".repeat(200_000);
    for (let index = 0; index < 20; index += 1) {
      const agents = [
        ...Array.from({ length: 4 }, (_, number) => ({ name: `large-${number}`, command: "true", description })),
        { name: `own-${index}-éﬀ`, command: "true" },
      ];
      await register(`runner-${index}`, coordinator.adminToken, { agents });
    }
    await coordinator.client.agents.put("large-1", { type: "procedural", command: "true", description });
    await coordinator.client.agents.put("zz", { type: "procedural", command: "true" });
    const pages = await readPages("/agents?limit=1000");
    expect(pages.length).toBeGreaterThan(20);
    expect(pages.filter((text) => text.length > maxBytes)).toEqual([]);
    const { items } = await coordinator.client.agents.list();
    const keys = pages.flatMap(listKeys);
    expect(listKeys(JSON.stringify({ items }))).toEqual(keys);
    expect([keys.length, new Set(keys).size]).toEqual([102, 102]);
    expect(items.find(({ name }) => name === "large-1")).toMatchObject({ source: "api" });
    expect(items.map(({ name }) => name)).toEqual(items.map(({ name }) => name).toSorted());
    const smallPages = await readPages("/agents?limit=7");
    expect(smallPages.flatMap(listKeys)).toEqual(keys);
  });

  test("pages of large runners stay below 1 MB and contain only the caller's own", async () => {
    await start();
    const tokens = new Map<string, string>();
    for (const subject of ["ann", "bob"])
      tokens.set(subject, (await coordinator.client.tokens.create({ role: "runner", subject })).token);
    for (let index = 0; index < 24; index += 1) {
      const executor = { type: "procedural", config: { text: "x".repeat(100_000) } };
      const agents = [{ name: `brought-${index}`, command: "true" }];
      await register(`runner-${index}`, tokens.get(index % 2 === 0 ? "ann" : "bob")!, { executor, agents });
    }
    const pages = await readPages("/runners?limit=1000");
    expect(pages.length).toBeGreaterThan(3);
    expect(pages.filter((text) => text.length > maxBytes)).toEqual([]);
    const { items } = await coordinator.client.runners.list();
    expect(items).toHaveLength(24);
    for (const { name, agents } of items) expect(agents).toEqual([`brought-${name?.slice("runner-".length)}`]);
    const user = await coordinator.client.tokens.create({ role: "user", subject: "ann" });
    const ownRunners = (await readPages("/runners?limit=5", user.token)).flatMap(
      (text) => (JSON.parse(text) as { items: { owner: string }[] }).items,
    );
    expect(ownRunners.map(({ owner }) => owner)).toEqual(Array.from({ length: 12 }, () => "ann"));
  });

  test("refuses a cursor of another list", async () => {
    await start();
    const cursor = Buffer.from("runners:x").toString("base64url");
    const refused = await rawCall(coordinator.url, {
      path: `/agents?cursor=${cursor}`,
      headers: { authorization: `Bearer ${coordinator.adminToken}` },
    });
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([400, { code: "DROVER-API-015" }]);
  });
});

function listKeys(text: string): string[] {
  const { items } = JSON.parse(text) as { items: { name: string; source: string; runner_id: string | null }[] };
  return items.map(({ name, source, runner_id }) => `${name} ${source} ${runner_id}`);
}
