import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { drive } from "../../test/fixtures/dispatch/drive.ts";
import { type ReceivedRequest, type Receiver, startReceiver } from "../../test/fixtures/trigger/receiver.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";
import type { CoordinatorOptions } from "../coordinator.ts";
import { createClient } from "../wire/client.ts";

const webhookAllow = ["127.0.0.1"];

describe.each(["SQLite", "PostgreSQL"])("webhooks on %s", (engine) => {
  let database: FreshDatabase | null = null;
  let receiver: Receiver;
  const coordinators: TestCoordinator[] = [];
  const recordSecret = randomBytes(32);
  const start = async (options: Partial<CoordinatorOptions> = {}): Promise<TestCoordinator> => {
    const coordinator = await startTestCoordinator({
      webhookAllow,
      deliveries: { everyMs: 20, retryMs: () => 20 },
      ...(database === null ? {} : { database: { url: database.url, secret: recordSecret } }),
      ...options,
    });
    coordinators.push(coordinator);
    return coordinator;
  };
  beforeEach(async () => {
    if (engine === "PostgreSQL") database = await freshDatabase();
    receiver = await startReceiver();
  });
  afterEach(async () => {
    for (const coordinator of coordinators.splice(0)) {
      await coordinator.dispose();
      expect(coordinator.defects).toEqual([]);
    }
    await receiver.close();
    await database?.drop();
  });

  const waitForDeliveries = async ({ client }: TestCoordinator, count = 1) => {
    await expect
      .poll(
        async () =>
          (await client.webhooks.deliveries()).items.filter(({ status }) => status !== "pending").length >= count,
        { timeout: 60_000 },
      )
      .toBe(true);
    return (await client.webhooks.deliveries()).items;
  };
  /** Submits a run and finishes it. */
  const finishRun = async (coordinator: TestCoordinator, status: "completed" | "failed", request: object = {}) => {
    const { client, store } = coordinator;
    await client.agents.put("work", { type: "procedural", command: "true" });
    const { run_id } = await client.submit({ agent_name: "work", ...request });
    const driver = drive(store, () => new Date());
    const runner = await driver.register("r");
    await driver.claim(runner);
    const failure = { reason: "exit_nonzero", error: "It said no." } as const;
    const result = { type: "result", status, exit_code: 0, result_text: "Done.", result_data: null } as const;
    await driver.finish(runner, run_id, 1, {
      result: { ...result, ...(status === "failed" ? failure : { reason: null, error: null }) },
    });
    return run_id;
  };

  it("are sent each event, with a signature that openssl verifies", async () => {
    const coordinator = await start();
    const { secret } = await coordinator.client.webhooks.add({ name: "chat", url: receiver.url });
    const run_id = await finishRun(coordinator, "failed");
    const [delivery] = await waitForDeliveries(coordinator);
    expect(delivery).toMatchObject({
      status: "delivered",
      attempts: 1,
      response_status: 200,
      response: "thanks",
      next_attempt_at: null,
    });
    const [{ body, headers }] = receiver.requests as [ReceivedRequest];
    expect(JSON.parse(body)).toMatchObject({
      event: "run.failed",
      delivery_id: delivery!.delivery_id,
      run: { run_id, agent_name: "work", status: "failed", reason: "exit_nonzero", error: "It said no." },
    });
    expect(headers).toMatchObject({ "drover-event": "run.failed", "drover-delivery": delivery!.delivery_id });
    const [, seconds, signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers["drover-signature"]))!;
    const printed = execFileSync("openssl", ["dgst", "-sha256", "-hmac", secret!], {
      input: `${seconds}.${body}`,
      encoding: "utf8",
    });
    expect(printed.trim().endsWith(signature!)).toBe(true);
  });

  it("keep secrets in addresses and payloads out of the record, and still send them", async () => {
    const coordinator = await start();
    const { client, store } = coordinator;
    const canary = `ghp_${"c4nArY0123".repeat(4).slice(0, 36)}`;
    const url = `${receiver.url}/${canary}?from=drover`;
    const added = await client.webhooks.add({ name: "chat", url, payload: { auth: canary, run: "{{/run/run_id}}" } });
    const changed = await client.webhooks.change("chat", { events: ["completed"] });
    receiver.answer((_, response) => response.writeHead(200).end(`thanks, ${canary}`));
    const run_id = await finishRun(coordinator, "completed", { task_id: `for ${canary}`, worktree_id: "w1" });
    const deliveries = await waitForDeliveries(coordinator);
    expect(receiver.requests).toMatchObject([
      { path: `/in/${canary}?from=drover`, body: expect.stringContaining(canary) },
    ]);
    const { token: _token, ...token } = await client.tokens.create({
      subject: "x",
      role: "user",
      label: `is ${canary}`,
    });
    const stored = [
      added,
      changed,
      deliveries,
      token,
      await client.webhooks.list(),
      await store.read.webhook("chat"),
      await client.runs.get(run_id),
    ];
    expect(JSON.stringify(stored)).not.toContain(canary);
    expect(await client.runs.get(run_id)).toMatchObject({ task_id: "for [redacted:github-token]", worktree_id: "w1" });
  });

  it("are retried until they respond with 2xx; a redirect does not count", async () => {
    const redirectTarget = await startReceiver();
    const coordinator = await start();
    await coordinator.client.webhooks.add({ name: "chat", url: receiver.url });
    const statuses = [500, 307, 404];
    receiver.answer((_, response) => {
      const status = statuses.shift();
      if (status === undefined) response.end();
      else response.writeHead(status, status === 307 ? { location: redirectTarget.url } : {}).end("no");
    });
    await finishRun(coordinator, "completed");
    expect(await waitForDeliveries(coordinator)).toMatchObject([{ status: "delivered", attempts: 4 }]);
    expect(new Set(receiver.requests.map(({ headers }) => headers["drover-delivery"])).size).toBe(1);
    expect(redirectTarget.connections()).toBe(0);
    await redirectTarget.close();
  });

  it("delay no other webhook if their receiver never responds", async () => {
    const slow = await startReceiver(() => undefined);
    const coordinator = await start({
      // With these limits, an attempt without a response is aborted only when the coordinator stops.
      deliveries: { everyMs: 20, timeoutMs: 600_000, leaseMs: 600_000 },
    });
    await coordinator.client.webhooks.add({ name: "a-slow", url: slow.url });
    await coordinator.client.webhooks.add({ name: "quick", url: receiver.url });
    for (let index = 0; index < 6; index += 1) await finishRun(coordinator, "completed");
    await expect.poll(() => receiver.requests.length, { timeout: 60_000 }).toBe(6);
    expect(slow.requests.length).toBeLessThanOrEqual(2);
    await slow.close();
  });

  it("with scope named are called only for runs that refer to them, with their custom payload filled in", async () => {
    const coordinator = await start();
    const payload = { text: "{{/run/agent_name}}: {{/event}} {{/run/error}}", n: [1, "{{/run/status}}"] };
    const { client } = coordinator;
    await client.webhooks.add({ name: "chat", url: receiver.url, scope: "named", events: ["failed"], payload });
    await finishRun(coordinator, "failed");
    const named = await finishRun(coordinator, "failed", { webhooks: ["chat"] });
    expect(await waitForDeliveries(coordinator)).toMatchObject([{ run_id: named }]);
    expect(receiver.requests.map(({ body }) => JSON.parse(body))).toEqual([
      { text: "work: run.failed It said no.", n: [1, "failed"] },
    ]);
    const unknown = client.submit({ agent_name: "work", webhooks: ["gone"] });
    await expect(unknown).rejects.toMatchObject({ code: "DROVER-HOK-008", field: "body.webhooks[0]" });
    await client.agents.put("work", { type: "procedural", command: "true", webhooks: ["gone", "chat"] });
    const { run_id } = await client.submit({ agent_name: "work" });
    const events = (await client.runs.events(run_id)).items.map(({ event }) => event);
    expect(events).toContainEqual({ type: "system", subtype: "unknown_webhook", data: { webhook: "gone" } });
  });

  it("of a user are called only for that user's runs; only an admin sees all webhooks", async () => {
    const coordinator = await start();
    const { token } = await coordinator.client.tokens.create({ subject: "ann", role: "user" });
    const ann = createClient({ url: coordinator.url, token });
    await ann.webhooks.add({ name: "anns", url: receiver.url });
    await finishRun(coordinator, "completed");
    const { run_id } = await ann.submit({ agent_name: "work" });
    await ann.runs.stop(run_id);
    await ann.webhooks.change("anns", { events: ["cancelled"] });
    const second = await ann.submit({ agent_name: "work" });
    await ann.runs.stop(second.run_id);
    expect(await waitForDeliveries(coordinator)).toMatchObject([{ run_id: second.run_id, event: "cancelled" }]);
    await coordinator.client.webhooks.add({ name: "all", url: receiver.url });
    expect((await ann.webhooks.list()).items.map(({ name }) => name)).toEqual(["anns"]);
    await expect(ann.webhooks.remove("all")).rejects.toMatchObject({ code: "DROVER-API-014" });
  });

  it("are sent a failed delivery again on request", async () => {
    const coordinator = await start({ deliveries: { everyMs: 20, retryMs: () => 2 * 86_400_000 } });
    const { client } = coordinator;
    await client.webhooks.add({ name: "chat", url: receiver.url });
    receiver.answer((_, response) => void response.writeHead(503).end("later"));
    await finishRun(coordinator, "completed");
    const [failed] = await waitForDeliveries(coordinator);
    expect(failed).toMatchObject({ status: "failed", error: "The receiver responded with 503.", response: "later" });
    receiver.answer((_, response) => void response.end());
    expect(await client.webhooks.redeliver(failed!.delivery_id)).toMatchObject({ status: "pending" });
    expect(await waitForDeliveries(coordinator)).toMatchObject([{ status: "delivered", attempts: 2 }]);
  });

  it("at forbidden addresses are refused, and names that resolve to one are never called", async () => {
    const coordinator = await start({ webhookAllow: ["hooks.example"] });
    const { client } = coordinator;
    await expect(client.webhooks.add({ name: "a", url: receiver.url })).rejects.toMatchObject({
      code: "DROVER-HOK-007",
      field: "body.url",
    });
    await client.webhooks.add({ name: "b", url: `http://localhost:${receiver.port}/` });
    await finishRun(coordinator, "completed");
    await expect
      .poll(async () => (await client.webhooks.deliveries()).items[0]?.error, { timeout: 60_000 })
      .toContain("is not a public address");
    expect(receiver.connections()).toBe(0);
  });

  it("are sent deliveries that a coordinator stored before it stopped", async () => {
    const first = await start({ deliveries: { everyMs: 600_000, timeoutMs: 600_000 } });
    await first.client.webhooks.add({ name: "chat", url: receiver.url });
    receiver.answer(() => undefined);
    const run_id = await finishRun(first, "completed");
    await expect.poll(() => receiver.requests.length, { timeout: 60_000 }).toBe(1);
    receiver.answer((_, response) => void response.end());
    await first.stop();
    const second = await start({ stateDirectory: first.directory });
    expect(await waitForDeliveries(second)).toMatchObject([{ status: "delivered", run_id }]);
    expect(receiver.requests.length).toBeGreaterThanOrEqual(2);
  });

  it("are called once per event by any number of coordinators", async () => {
    const all = [await start()];
    if (engine === "PostgreSQL") all.push(await start(), await start());
    const [first] = all as [TestCoordinator];
    await first.client.webhooks.add({ name: "chat", url: receiver.url });
    await first.client.agents.put("work", { type: "procedural", command: "true" });
    const runs: string[] = [];
    for (let index = 0; index < 20; index += 1) {
      const { client } = all[index % all.length]!;
      const { run_id } = await client.submit({ agent_name: "work" });
      runs.push(run_id);
    }
    await first.client.webhooks.change("chat", { events: ["cancelled"] });
    await Promise.all(runs.map((run_id, index) => all[index % all.length]!.client.runs.stop(run_id)));
    await waitForDeliveries(first, runs.length);
    const deliveredIds = receiver.requests.map(
      ({ body }) => (JSON.parse(body) as { run: { run_id: string } }).run.run_id,
    );
    expect(deliveredIds.toSorted()).toEqual(runs.toSorted());
  });
});
