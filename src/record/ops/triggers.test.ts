import { expect, it } from "vitest";
import { createAgent } from "../../../test/fixtures/dispatch/drive.ts";
import { eachEngine, type EachRecord } from "../../../test/fixtures/record/each-engine.ts";
import { sampleId } from "../../../test/fixtures/record/sample.ts";
import type { Agent } from "../../model/agent.ts";
import { newRun } from "../../model/new-run.ts";
import type { CreateRun } from "../../model/store.ts";
import type { Webhook } from "../../model/webhook.ts";
import { deliveryWindowMs } from "../moves/notify.ts";
import { pruneDispatch } from "../retention-dispatch.ts";

const lease_ms = 60_000;
const claim = { op: "claim_deliveries", limit: 10, lease_ms, max_per_webhook: 10, busy: [] as string[] } as const;
const createResult = (status: "completed" | "failed", result_data: unknown = null) => ({
  type: "result" as const,
  status,
  reason: status === "failed" ? ("exit_nonzero" as const) : null,
  error: status === "failed" ? "exit 3" : null,
  exit_code: 0,
  result_text: "the text",
  result_data,
});

async function addWebhook({ store, now }: EachRecord, changes: Partial<Webhook> = {}): Promise<void> {
  const webhook: Webhook = {
    name: "chat",
    url: "https://chat.example/in",
    events: ["completed", "failed"],
    scope: "all",
    payload: null,
    enabled: true,
    created_by: "root",
    everyones: true,
    created_at: now().toISOString(),
    ...changes,
  };
  const [put] = await store.apply([{ op: "put_webhook", webhook, secret: "sealed", create: true }]);
  expect(put).toEqual({ ok: true, op: "put_webhook" });
}

/** Starts a run and finishes it. */
async function endRun(
  { driver }: EachRecord,
  agent: Agent = createAgent("echo"),
  status: "completed" | "failed" = "completed",
  options: Partial<CreateRun> = {},
  data: unknown = null,
): Promise<string> {
  const run_id = await driver.submit({}, agent, options);
  const runner = await driver.register("r");
  await driver.claim(runner);
  expect(await driver.finish(runner, run_id, 1, { result: createResult(status, data) })).toMatchObject({ ok: true });
  return run_id;
}

eachEngine("lists of hooks and webhooks", (record) => {
  const addHook = (name: string, created_by: string, prompt = "") => {
    const at = record.now().toISOString();
    const definition = {
      name,
      prompt,
      agent_name: "echo",
      scheme: "drover",
      parameters: {},
      only: null,
      events: null,
    } as const;
    const hook = {
      ...definition,
      attended: null,
      max_body_kb: 1,
      enabled: true,
      created_by,
      created_at: at,
      updated_at: at,
    };
    return { op: "put_hook", hook, secret: "sealed", create: true } as const;
  };
  const listNames = ({ items }: { items: { name: string }[] }) => items.map(({ name }) => name);

  it("contain only entries of the owner, however many of other owners come before", async () => {
    await record.store.apply([addHook("a", "ann"), addHook("b", "bob"), addHook("c", "ann"), addHook("d", "bob")]);
    await addWebhook(record, { name: "a", created_by: "ann", everyones: false });
    await addWebhook(record, { name: "b", created_by: "bob", everyones: true });
    await addWebhook(record, { name: "c", created_by: "bob", everyones: false });
    const { read } = record.store;
    const page = await read.hooks({ owner: "bob", limit: 1 });
    expect([listNames(page), page.more]).toEqual([["b"], true]);
    const rest = await read.hooks({ owner: "bob", limit: 1, after: "b" });
    expect([listNames(rest), rest.more]).toEqual([["d"], false]);
    expect(listNames(await read.hooks({ limit: 9 }))).toEqual(["a", "b", "c", "d"]);
    expect(listNames(await read.webhooks({ owner: "bob", limit: 9 }))).toEqual(["c"]);
    expect(listNames(await read.webhooks({ limit: 9, after: "a" }))).toEqual(["b", "c"]);
  });

  it("end a page before it exceeds half a megabyte", async () => {
    const long = "x".repeat(200_000);
    await record.store.apply(["a", "b", "c"].map((name) => addHook(name, "ann", long)));
    const page = await record.store.read.hooks({ limit: 9 });
    expect([listNames(page), page.more]).toEqual([["a", "b"], true]);
    const payload = { text: long };
    for (const name of ["a", "b", "c"]) await addWebhook(record, { name, payload });
    const second = await record.store.read.webhooks({ limit: 9 });
    expect([listNames(second), second.more]).toEqual([["a", "b"], true]);
  });

  it("contain at most 1,000 entries of one owner", async () => {
    await record.store.apply(Array.from({ length: 1000 }, (_, n) => addHook(`h${n}`, "ann")));
    const [more, others] = await record.store.apply([addHook("more", "ann"), addHook("others", "bob")]);
    expect(more).toEqual({ ok: false, conflict: "too_many" });
    expect(others).toMatchObject({ ok: true });
    const webhook = { url: "https://chat.example/in", events: ["failed"], scope: "all", payload: null } as const;
    const add = (name: string, created_by: string) => {
      const rest = { enabled: true, created_by, everyones: false, created_at: record.now().toISOString() };
      const put = { ...webhook, ...rest, name, events: [...webhook.events] };
      return { op: "put_webhook", webhook: put, secret: "sealed", create: true } as const;
    };
    await record.store.apply(Array.from({ length: 1000 }, (_, n) => add(`w${n}`, "ann")));
    const results = await record.store.apply([add("more", "ann"), add("others", "bob")]);
    expect(results).toMatchObject([{ ok: false, conflict: "too_many" }, { ok: true }]);
  });
});

eachEngine("deliveries", (record) => {
  const listDeliveries = (status?: "pending" | "delivered" | "failed") =>
    record.store.read.deliveries(status === undefined ? {} : { status }, { limit: 50 });

  it("are stored when a run ends, for the webhooks that subscribed to it", async () => {
    await addWebhook(record);
    await addWebhook(record, { name: "failures", events: ["failed", "cancelled"] });
    await addWebhook(record, { name: "off", enabled: false });
    await addWebhook(record, { name: "anns", created_by: "ann", everyones: false });
    await addWebhook(record, { name: "bobs", created_by: "bob", everyones: false });
    await addWebhook(record, { name: "by-name", scope: "named" });
    const [first, second] = [await endRun(record), await endRun(record, createAgent("echo"), "failed")];
    const sent = (await listDeliveries()).items.map(({ webhook, run_id, event }) => [webhook, run_id, event]);
    const { created_by } = (await record.store.read.run(first))!;
    const ownWebhook = { ann: "anns", bob: "bobs" }[created_by];
    expect(sent.filter(([webhook]) => webhook !== ownWebhook).toSorted()).toEqual(
      [
        ["chat", first, "completed"],
        ["chat", second, "failed"],
        ["failures", second, "failed"],
      ].toSorted(),
    );
    expect(sent.filter(([webhook]) => webhook === ownWebhook)).toHaveLength(ownWebhook === undefined ? 0 : 2);
    const namedRun = await endRun(record, createAgent("echo"), "completed", { webhooks: ["by-name", "gone"] });
    expect((await record.store.read.deliveries({ webhook: "by-name" }, { limit: 5 })).items).toMatchObject([
      { run_id: namedRun },
    ]);
  });

  it("are stored whenever a run ends or waits: stopped, lost, parked", async () => {
    await addWebhook(record, { events: ["completed", "failed", "cancelled", "waiting", "parked"] });
    const stopped = await record.driver.submit({});
    await record.store.apply([{ op: "stop_runs", run_ids: [stopped], reason: "user", by: "ann" }]);
    const runner = await record.driver.register("r");
    const lost = await record.driver.submit({});
    await record.driver.claim(runner);
    record.advance(10_001);
    await record.store.apply([{ op: "rescue", unmatched_ms: 300_000, limit: 10 }]);
    const parked = await record.driver.submit({}, createAgent("think", { type: "autonomous", command: null }));
    const replacement = await record.driver.register("r");
    await record.driver.claim(replacement);
    await record.driver.finish(replacement, parked, 1, {
      parked: { why: "usage_limit", until: "2026-03-02T00:00:00.000Z" },
    });
    expect((await listDeliveries()).items.map(({ run_id, event }) => [run_id, event])).toEqual([
      [parked, "parked"],
      [lost, "failed"],
      [stopped, "cancelled"],
    ]);
    const [claimed] = await record.store.apply([claim]);
    expect(claimed).toMatchObject({
      deliveries: [
        { state: { status: "cancelled" } },
        { state: { status: "failed", reason: "runner_lost" } },
        { state: { status: "parked", parked_why: "usage_limit" } },
      ],
    });
  });

  it("are handed to one caller at a time, and again once its lease has expired", async () => {
    await addWebhook(record);
    const run_id = await endRun(record);
    const [[one], [two]] = await Promise.all([record.store.apply([claim]), record.store.apply([claim])]);
    const claimed = [one, two].flatMap((answer) => (answer.ok ? answer.deliveries : []));
    expect(claimed).toMatchObject([{ attempt: 1, run: { run_id }, secret: "sealed", event: "completed" }]);
    record.advance(lease_ms - 1);
    expect(await record.store.apply([claim])).toMatchObject([{ deliveries: [] }]);
    record.advance(1);
    expect(await record.store.apply([claim])).toMatchObject([{ deliveries: [{ attempt: 2 }] }]);
    const { delivery_id } = claimed[0]!;
    const settle = { op: "settle_delivery", delivery_id, response_status: 200, response: "ok" } as const;
    // The first holder settles the delivery after it was handed to the second.
    expect(await record.store.apply([{ ...settle, attempt: 1, outcome: { delivered: true } }])).toEqual([
      { ok: false, conflict: "stale" },
    ]);
    expect(await record.store.apply([{ ...settle, attempt: 2, outcome: { delivered: true } }])).toMatchObject([
      { status: "delivered" },
    ]);
    expect((await listDeliveries()).items).toMatchObject([
      { status: "delivered", response_status: 200, next_attempt_at: null },
    ]);
  });

  it("are retried for a day, then fail, and can be sent again for another day", async () => {
    await addWebhook(record);
    await endRun(record);
    const failDelivery = async (retry_in_ms: number) => {
      const [claimed] = await record.store.apply([claim]);
      const { delivery_id, attempt } = (claimed.ok ? claimed.deliveries : [])[0]!;
      const outcome = { delivered: false, error: "refused", retry_in_ms } as const;
      const [settled] = await record.store.apply([
        { op: "settle_delivery", delivery_id, attempt, outcome, response_status: 500, response: "no" },
      ]);
      return { delivery_id, settled };
    };
    expect((await failDelivery(1000)).settled).toMatchObject({ status: "pending" });
    expect(await record.store.read.triggers_due(record.now())).toEqual({ deliveries: false, chains: false });
    record.advance(1000);
    const { delivery_id, settled } = await failDelivery(deliveryWindowMs);
    expect(settled).toMatchObject({ status: "failed" });
    expect((await listDeliveries("failed")).items).toMatchObject([{ attempts: 2, error: "refused", response: "no" }]);
    expect(await record.store.apply([claim])).toMatchObject([{ deliveries: [] }]);
    expect(await record.store.apply([{ op: "redeliver", delivery_id }])).toMatchObject([{ ok: true }]);
    expect(await record.store.read.triggers_due(record.now())).toEqual({ deliveries: true, chains: false });
    expect((await failDelivery(deliveryWindowMs)).settled).toMatchObject({ status: "pending" });
  });

  it("of a busy webhook, or beyond its share, do not delay the others", async () => {
    await addWebhook(record);
    await addWebhook(record, { name: "slow" });
    for (let index = 0; index < 3; index += 1) await endRun(record);
    expect(await record.store.apply([{ ...claim, max_per_webhook: 2, busy: ["slow"] }])).toMatchObject([
      { deliveries: [{ webhook: "chat" }, { webhook: "chat" }] },
    ]);
  });

  it("of one owner, beyond the owner's share, do not delay another owner's", async () => {
    for (const name of ["a", "b", "c"]) await addWebhook(record, { name, created_by: "greedy", everyones: true });
    await addWebhook(record, { name: "last", created_by: "other", everyones: true });
    await endRun(record);
    const [claimed] = await record.store.apply([
      { ...claim, limit: 3, max_per_webhook: 1, max_per_owner: 2, in_progress: ["greedy"] },
    ]);
    expect(claimed).toMatchObject({ deliveries: [{ owner: "greedy" }, { webhook: "last", owner: "other" }] });
  });

  it("are removed with their run and with their webhook", async () => {
    await addWebhook(record);
    await addWebhook(record, { name: "other" });
    await endRun(record);
    await record.store.apply([{ op: "delete_webhook", name: "other" }]);
    expect((await listDeliveries()).items).toHaveLength(1);
    record.advance(40 * 86_400_000);
    await record.driver.submit({});
    await pruneDispatch(record.store, new Date(record.now().getTime() - 86_400_000));
    expect((await listDeliveries()).items).toEqual([]);
  });

  it("are listed in pages, newest first", async () => {
    await addWebhook(record);
    const runs = [await endRun(record), await endRun(record), await endRun(record)];
    const readOwner = async (run_id: string) => (await record.store.read.run(run_id))!.created_by;
    const first = await record.store.read.deliveries({}, { limit: 2 });
    const second = await record.store.read.deliveries({}, { limit: 2, before: first.next! });
    expect([...first.items, ...second.items].map(({ run_id }) => run_id)).toEqual(runs.toReversed());
    expect(second.next).toBeNull();
    // Deliveries of a webhook that covers all users belong to nobody but admins.
    expect((await record.store.read.deliveries({ owner: "root" }, { limit: 9 })).items).toEqual([]);
    await record.store.apply([{ op: "delete_webhook", name: "chat" }]);
    const owner = await readOwner(runs[0]!);
    await addWebhook(record, { name: "own", created_by: owner, everyones: false });
    const run_id = await endRun(record);
    expect((await record.store.read.deliveries({ run_id, owner }, { limit: 9 })).items).toHaveLength(1);
    expect((await record.store.read.deliveries({ owner: "ann" }, { limit: 9 })).items).toEqual([]);
  });
});

eachEngine("a delivery to a hook", (record) => {
  const settles = (...keys: string[]) => ({ settles: { hook: "h", keys, until: record.now().getTime() + 1000 } });

  it("creates one run, whichever of its keys is repeated", async () => {
    await record.driver.submit({}, createAgent("echo"), settles("a", "b"));
    for (const keys of [["a"], ["c", "b"], ["a", "b"]])
      await expect(record.driver.submit({}, createAgent("echo"), settles(...keys))).rejects.toThrow("repeated");
    await record.driver.submit({}, createAgent("echo"), settles("c"));
    expect(await record.store.read.runs({}, { limit: 9 })).toHaveLength(2);
  });

  it("creates one run if two arrive at once", async () => {
    const results = await Promise.allSettled([
      record.driver.submit({}, createAgent("echo"), settles("k")),
      record.driver.submit({}, createAgent("echo"), settles("k")),
    ]);
    expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  });

  it("is forgotten after its retention", async () => {
    await record.driver.submit({}, createAgent("echo"), settles("k"));
    record.advance(999);
    await pruneDispatch(record.store, new Date(0));
    expect(await record.rows("select key from hook_keys")).toHaveLength(1);
    record.advance(2);
    await pruneDispatch(record.store, new Date(0));
    expect(await record.rows("select key from hook_keys")).toEqual([]);
  });
});

eachEngine("a chain", (record) => {
  const on_finish = {
    agent: "review",
    when: "completed" as const,
    parameters: { what: { from: "/result_data/files/0" }, style: "strict", text: { from: "/result_text" } },
    prompt: "Look at {{/result_data/files}} of {{/agent_name}}.",
  };
  const createChangeAgent = (changes: object = {}) =>
    createAgent("change", { on_finish: { ...on_finish, ...changes } });

  it("is stored when the run ends, with values from its result", async () => {
    const run_id = await endRun(record, createChangeAgent(), "completed", {}, { files: ["a.ts", "b.ts"] });
    expect(await record.store.read.pending_chains(9)).toMatchObject([
      {
        parent_run_id: run_id,
        agent_name: "review",
        parameters: { what: "a.ts", style: "strict", text: "the text" },
        prompt: 'Look at ["a.ts","b.ts"] of change.',
        fault: null,
      },
    ]);
    const types = (await record.store.read.events(run_id, 0, 100)).map(({ event }) => event.type);
    expect(types.slice(-2)).toEqual(["system", "result"]);
  });

  it("follows only the outcome it names; `always` includes cancelled runs", async () => {
    await endRun(record, createChangeAgent(), "failed");
    await endRun(record, createChangeAgent({ when: "failed", parameters: {} }));
    expect(await record.store.read.pending_chains(9)).toEqual([]);
    const failed = await endRun(record, createChangeAgent({ when: "failed", parameters: {} }), "failed");
    const stopped = await record.driver.submit({}, createChangeAgent({ when: "always", parameters: {} }));
    await record.store.apply([{ op: "stop_runs", run_ids: [stopped], reason: "user", by: "ann" }]);
    const lost = await record.driver.submit({}, createChangeAgent({ when: "failed", parameters: {} }));
    await record.driver.claim(await record.driver.register("l"));
    record.advance(10_001);
    await record.store.apply([{ op: "rescue", unmatched_ms: 300_000, limit: 10 }]);
    const followed = (await record.store.read.pending_chains(9)).map(({ parent_run_id }) => parent_run_id);
    expect(followed).toEqual([failed, stopped, lost]);
  });

  it("becomes one run, however often it is submitted", async () => {
    const run_id = await endRun(record, createChangeAgent({ parameters: {} }));
    const settles = { settles: { chain_of: run_id } };
    const child = { parent_run_id: run_id, trigger_type: "agent" as const };
    await record.driver.submit(child, createAgent("review"), settles);
    await expect(record.driver.submit(child, createAgent("review"), settles)).rejects.toThrow("repeated");
    expect(await record.store.read.pending_chains(9)).toEqual([]);
    expect(await record.store.read.runs({ parent_run_id: run_id }, { limit: 9 })).toHaveLength(1);
  });

  it("creates a failed child if it cannot be submitted, and the run keeps its result", async () => {
    await addWebhook(record, { events: ["failed"] });
    const run_id = await endRun(record, createChangeAgent());
    const fault = (await record.store.read.pending_chains(9))[0]?.fault ?? "";
    expect(fault).toContain("/result_data/files/0 for what");
    const run = newRun({
      run_id: sampleId(),
      agent_name: "review",
      created_by: "ann",
      created_at: record.now().toISOString(),
      parent_run_id: run_id,
      trigger_type: "agent",
    });
    const refusal = { op: "refuse_chain", parent_run_id: run_id, run, why: fault } as const;
    expect(await record.store.apply([refusal])).toMatchObject([{ ok: true }]);
    expect(await record.store.apply([refusal])).toEqual([{ ok: false, conflict: "repeated" }]);
    expect(await record.store.read.run(run.run_id)).toMatchObject({
      status: "failed",
      reason: "refused",
      error: fault,
      parent_run_id: run_id,
    });
    expect(await record.store.read.run(run_id)).toMatchObject({ status: "completed", reason: null });
    expect((await record.store.read.deliveries({}, { limit: 9 })).items).toMatchObject([{ run_id: run.run_id }]);
  });

  it("stops after eight runs", async () => {
    const loopingAgent = createChangeAgent({ agent: "change", parameters: {} });
    let run_id = await endRun(record, loopingAgent);
    for (let index = 0; index < 8; index += 1) {
      expect(await record.store.read.pending_chains(9)).toMatchObject([{ parent_run_id: run_id, fault: null }]);
      run_id = await endRun(record, loopingAgent, "completed", { settles: { chain_of: run_id } });
    }
    expect(await record.store.read.pending_chains(9)).toMatchObject([
      { parent_run_id: run_id, fault: expect.stringContaining("8 runs") },
    ]);
  });
});
