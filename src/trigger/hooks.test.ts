import { createHmac, randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";
import type { Problem } from "../wire/problem.ts";
import { createSignature } from "./signature.ts";

const secret = "the-secret-of-a-hook";

describe.each(["SQLite", "PostgreSQL"])("a hook on %s", (engine) => {
  let database: FreshDatabase | null = null;
  let coordinator: TestCoordinator;
  beforeAll(async () => {
    if (engine === "PostgreSQL") database = await freshDatabase();
    coordinator = await startTestCoordinator(
      database === null ? {} : { database: { url: database.url, secret: randomBytes(32) } },
    );
    await coordinator.client.agents.put("review", {
      type: "procedural",
      command: "true",
      parameters_schema: { type: "object", properties: { title: { type: "string" }, n: { type: "integer" } } },
    });
  });
  afterAll(async () => {
    await coordinator.dispose();
    await database?.drop();
  });
  afterEach(async () => {
    for (const { name } of (await coordinator.client.hooks.list()).items) await coordinator.client.hooks.remove(name);
    expect(coordinator.defects).toEqual([]);
  });

  const add = (changes: object = {}) =>
    coordinator.client.hooks.add({
      name: "in",
      agent_name: "review",
      parameters: { title: { from: "/pull/title" }, n: { from: "/n", default: 7 } },
      secret,
      ...changes,
    });
  const call = (name: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>) =>
    fetch(`${coordinator.url}/hooks/${name}`, { method: "POST", body, headers });
  const deliver = (body: string, time = new Date(), name = "in") =>
    call(name, body, { "drover-signature": createSignature(secret, Buffer.from(body), time) });
  const deliverAsGithub = (body: string, headers: Record<string, string> = {}) =>
    call("in", body, {
      "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
      "x-github-event": "pull_request",
      ...headers,
    });
  const readProblem = async (response: Response) => {
    // Every refusal of a coordinator is a problem document.
    const { status, code } = (await response.json()) as Problem;
    return { status, code };
  };
  const validBody = (n = 1) => JSON.stringify({ pull: { title: "Grüße" }, n });
  const listRuns = () => coordinator.client.runs.list({ agent_name: "review" });

  it("is refused above 64 KB, and a list of large hooks spans several pages", async () => {
    const { hooks } = coordinator.client;
    const long = "x".repeat(60_000);
    const tooLarge = { code: "DROVER-API-006" };
    await expect(add({ prompt: "x".repeat(70_000) })).rejects.toMatchObject(tooLarge);
    await expect(add({ parameters: { title: long, n: long } })).rejects.toMatchObject(tooLarge);
    const names = Array.from({ length: 12 }, (_, n) => `long-${String(n).padStart(2, "0")}`);
    for (const name of names) await add({ name, prompt: long });
    await expect(hooks.change("long-00", { parameters: { title: long } })).rejects.toMatchObject(tooLarge);
    expect(await hooks.change("long-00", { enabled: false })).toMatchObject({ enabled: false });
    const headers = { authorization: `Bearer ${coordinator.adminToken}` };
    const page = await (await fetch(`${coordinator.url}/hooks`, { headers })).text();
    expect(page.length).toBeLessThan(600_000);
    expect(JSON.parse(page)).toMatchObject({ next_cursor: expect.any(String) });
    expect((await hooks.list()).items.map(({ name }) => name)).toEqual(names);
  });

  it("creates a run of its owner from a signed delivery, with values from the body", async () => {
    await add({ prompt: "Review {{/pull/title}}, number {{/n}}.", attended: true });
    const response = await deliver(validBody(3));
    expect(response.status).toBe(202);
    // The contract of the route guarantees this type.
    const { run_id } = (await response.json()) as { run_id: string };
    expect(await coordinator.client.runs.get(run_id)).toMatchObject({
      agent_name: "review",
      trigger_type: "webhook",
      parameters: { title: "Grüße", n: 3 },
      prompt: "Review Grüße, number 3.",
      attended: true,
      created_by: "admin",
    });
  });

  it("gives the same response to wrong, missing and unknown signatures, and never shows a secret again", async () => {
    expect(await add()).toMatchObject({ name: "in", secret });
    expect(JSON.stringify(await coordinator.client.hooks.list())).not.toContain(secret);
    const responses = [
      await call("in", validBody(), {}),
      await call("in", validBody(), { "drover-signature": `t=1,v1=${"0".repeat(64)}` }),
      await call("in", validBody(), { "drover-signature": "nonsense" }),
      await deliverAsGithub(validBody()),
      await deliver(validBody(), new Date(), "another"),
      await deliver("not json", new Date(), "another"),
      await call("in", "not json", {}),
    ];
    const texts = await Promise.all(responses.map((response) => response.text()));
    expect(new Set(texts).size).toBe(1);
    expect(JSON.parse(texts[0]!)).toMatchObject({ status: 401, code: "DROVER-HOK-001", faults: [] });
    await coordinator.client.hooks.change("in", { enabled: false });
    expect(await (await deliver(validBody())).text()).toBe(texts[0]);
  });

  it("refuses a delivery that is old, repeated or from the future", async () => {
    await add();
    const before = (await listRuns()).items.length;
    const old = new Date(Date.now() - 301_000);
    expect(await readProblem(await deliver(validBody(), old))).toEqual({ status: 401, code: "DROVER-HOK-002" });
    const ahead = new Date(Date.now() + 302_000);
    expect(await readProblem(await deliver(validBody(), ahead))).toEqual({ status: 401, code: "DROVER-HOK-002" });
    const time = new Date();
    const responses = await Promise.all([
      deliver(validBody(), time),
      deliver(validBody(), time),
      deliver(validBody(), time),
    ]);
    expect(responses.map(({ status }) => status).toSorted()).toEqual([202, 409, 409]);
    expect(await readProblem(await deliver(validBody(), time))).toEqual({ status: 409, code: "DROVER-HOK-003" });
    expect((await listRuns()).items.length).toBe(before + 1);
  });

  it("reports what is wrong with a signed body, and accepts the same delivery once it is fixed", async () => {
    await add({ max_body_kb: 1 });
    const time = new Date();
    expect(await readProblem(await deliver("not json"))).toEqual({ status: 400, code: "DROVER-API-001" });
    expect(await readProblem(await deliver("[".repeat(100) + "]".repeat(100)))).toMatchObject({
      code: "DROVER-API-004",
    });
    expect(await readProblem(await deliver("x".repeat(1025)))).toEqual({ status: 413, code: "DROVER-API-003" });
    expect(await readProblem(await deliver("x".repeat(1024 * 1024 + 1)))).toEqual({
      status: 413,
      code: "DROVER-API-003",
    });
    expect(await readProblem(await deliver('{"n":1}'))).toEqual({ status: 400, code: "DROVER-HOK-004" });
    expect(await readProblem(await deliver('{"pull":{"title":1}}', time))).toEqual({
      status: 400,
      code: "DROVER-PAR-001",
    });
    expect(
      await readProblem(await deliver('{"__proto__":{"title":"x"},"pull":{"title":{"constructor":1}}}')),
    ).toMatchObject({
      status: 400,
    });
    await coordinator.client.hooks.change("in", { agent_name: "gone" });
    expect(await readProblem(await deliver(validBody(), time))).toEqual({ status: 404, code: "DROVER-SUB-001" });
    await coordinator.client.hooks.change("in", { agent_name: "review" });
    // The delivery created no run before, so it is not a replay.
    expect((await deliver(validBody(), time)).status).toBe(202);
  });

  it("supports GitHub's signature, ping, events and delivery ids", async () => {
    await add({ scheme: "github", events: ["pull_request"], only: { "/action": ["opened", "synchronize"] } });
    const opened = (title: string) => JSON.stringify({ action: "opened", pull: { title } });
    const first = await deliverAsGithub(opened("one"), { "x-github-delivery": "d-1" });
    expect(first.status).toBe(202);
    expect(await readProblem(await deliverAsGithub(opened("one"), { "x-github-delivery": "d-2" }))).toMatchObject({
      status: 409,
    });
    expect(await readProblem(await deliverAsGithub(opened("two"), { "x-github-delivery": "d-1" }))).toMatchObject({
      code: "DROVER-HOK-003",
    });
    expect((await deliverAsGithub(opened("two"), { "x-github-delivery": "d-3" })).status).toBe(202);
    for (const [body, event] of [
      [opened("three"), "ping"],
      [opened("three"), "push"],
      [JSON.stringify({ action: "closed", pull: { title: "x" } }), "pull_request"],
    ] as const) {
      const response = await deliverAsGithub(body, { "x-github-event": event });
      expect(response.status).toBe(202);
      expect(await response.json()).toMatchObject({ run_id: null, skipped: expect.any(String) });
    }
    // The other scheme's signature does not bypass the delivery ids.
    expect(await readProblem(await deliver(opened("four")))).toMatchObject({ code: "DROVER-HOK-001" });
  });

  it("limits the rate of deliveries and says when to retry", async () => {
    await add({ name: "often", only: { "/n": ["never"] } });
    const responses = await Promise.all(
      Array.from({ length: 200 }, (_, n) => deliver(validBody(n), new Date(), "often")),
    );
    const refused = responses.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(responses.every(({ status }) => status === 202 || status === 429)).toBe(true);
    expect(Number(refused[0]?.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  it("accepts only the new secret after a rotation", async () => {
    await add();
    const { secret: newSecret } = await coordinator.client.hooks.change("in", { rotate_secret: true });
    expect(newSecret).toMatch(/^whsec_/);
    expect(await readProblem(await deliver(validBody()))).toMatchObject({ code: "DROVER-HOK-001" });
    const signature = createSignature(newSecret!, Buffer.from(validBody()), new Date());
    expect((await call("in", validBody(), { "drover-signature": signature })).status).toBe(202);
    const stored = await coordinator.store.read.hook("in");
    expect(stored?.secret).not.toContain(newSecret!.slice(6));
  });

  it.each([
    [{ name: "a b" }, "body.name"],
    [{ parameters: { a: { from: "title" } } }, "body.parameters"],
    [{ prompt: "{{title}}" }, "body.prompt"],
    [{ secret: "short" }, "body.secret"],
    [{ max_body_kb: 2000 }, "body.max_body_kb"],
    [{ colour: 1 }, "body"],
  ])("refuses %j", async (changes, path) => {
    const fault = await add(changes).catch((error: unknown) => error);
    expect(String(Reflect.get(fault as object, "field"))).toContain(path);
    expect(await readProblem(await call("", "", {}))).toMatchObject({ status: expect.any(Number) });
  });
});
