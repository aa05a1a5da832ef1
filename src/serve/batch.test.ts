import { afterAll, beforeAll, expect, test } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { createClient } from "../wire/client.ts";
import { createHttpPort } from "../wire/http-port.ts";

let coordinator: TestCoordinator;
let token: string;
/** How many runs each transaction created. */
const createdCounts: number[] = [];

beforeAll(async () => {
  coordinator = await startTestCoordinator({ leaseMs: 600_000 });
  coordinator.store.changes(({ claimable }) => {
    if (claimable.length > 0) createdCounts.push(claimable.length);
  });
  await coordinator.client.agents.put("work", {
    command: "true",
    parameters_schema: { type: "object", properties: { n: { type: "integer" } }, additionalProperties: false },
  });
  token = (await coordinator.client.tokens.create({ role: "user", subject: "ann" })).token;
});
afterAll(async () => {
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
});

async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await rawCall(coordinator.url, {
    path,
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: JSON.parse(response.text) };
}

test("validates each run of a batch as POST /runs does, and creates the valid runs", async () => {
  const refused: unknown[] = [
    { agent_name: "wrk" },
    { agent_name: "work", parameters: { n: "x" } },
    { agent_name: "work", priority: 1.5 },
    { agent_name: "work", odd: 1 },
    { agent_name: "work", retry_of: "another" },
    { agent_name: "work", parent_run_id: "somebody-else" },
    { agent_name: "work", mode: "resume", session_id: "unknown" },
    { agent_name: "work", webhooks: ["unknown"] },
    "work",
    null,
  ];
  const valid = [1, 2, 3].map((n) => ({ agent_name: "work", parameters: { n }, task_id: `t${n}` }));
  const separateResults = [];
  for (const item of refused) separateResults.push((await post("/runs", item)).body);
  expect(separateResults.map(({ code }) => code)).toContain("DROVER-PAR-001");
  createdCounts.splice(0);
  const { status, body } = await post("/runs/batch", { runs: [valid[0], ...refused, valid[1], valid[2]] });
  expect(status).toBe(200);
  expect(body.items.slice(1, -2)).toEqual(separateResults.map((problem) => ({ problem })));
  const runs = [body.items[0], ...body.items.slice(-2)].map(({ run }) => run);
  expect(runs).toMatchObject(valid.map((item) => ({ ...item, status: "pending", created_by: "ann" })));
  expect(createdCounts).toEqual([3]);
  expect(await coordinator.client.runs.get(runs[1].run_id)).toEqual(runs[1]);
});

test("creates one run for each idempotency key, within a batch, across batches and with POST /runs", async () => {
  const item = { agent_name: "work", parameters: { n: 1 } };
  const keyed = { ...item, idempotency_key: "k" };
  const { body } = await post("/runs/batch", { runs: [keyed, { ...keyed, parameters: { n: 2 } }, keyed, item] });
  const [first, other, repeated, unkeyed] = body.items;
  expect(other.problem).toMatchObject({
    status: 409,
    code: "DROVER-SUB-004",
    faults: [{ path: "body.idempotency_key", message: "used before with another body" }],
  });
  expect(repeated.run.run_id).toBe(first.run.run_id);
  expect(unkeyed.run.run_id).not.toBe(first.run.run_id);
  const later = await post("/runs/batch", { runs: [keyed] });
  expect(later.body.items[0].run.run_id).toBe(first.run.run_id);
  const single = await post("/runs", item, { "idempotency-key": "k" });
  expect([single.status, single.body.run_id]).toEqual([200, first.run.run_id]);
});

test("accepts up to 1,000 runs, with a body larger than one run may have, and refuses more or none", async () => {
  const batch = (count: number) => ({ runs: Array.from({ length: count }, () => ({ agent_name: "work" })) });
  expect((await post("/runs/batch", batch(0))).status).toBe(400);
  expect((await post("/runs/batch", batch(1001))).body).toMatchObject({
    code: "DROVER-API-006",
    faults: [{ path: "body.runs" }],
  });
  const { body } = await post("/runs/batch", {
    runs: batch(1000).runs.map((run) => ({ ...run, prompt: "x".repeat(1500) })),
  });
  expect(new Set(body.items.map(({ run }: { run: { run_id: string } }) => run.run_id)).size).toBe(1000);
});

test("stores a large batch in several transactions, with rounds of the event loop between them", async () => {
  const rounds: number[] = [];
  let round = 0;
  let timer = setImmediate(count);
  function count(): void {
    round += 1;
    timer = setImmediate(count);
  }
  const unlisten = coordinator.store.changes(({ claimable }) => {
    if (claimable.length > 0) rounds.push(round);
  });
  createdCounts.splice(0);
  const runs = Array.from({ length: 950 }, () => ({ agent_name: "work" }));
  const { body } = await post("/runs/batch", { runs });
  unlisten();
  clearImmediate(timer);
  expect(body.items.every((item: object) => "run" in item)).toBe(true);
  expect(createdCounts).toEqual([...Array.from({ length: 9 }, () => 100), 50]);
  expect(new Set(rounds).size).toBe(10);
});

test("does not let a batch wait for another user's batches", async () => {
  createdCounts.splice(0);
  const { token: otherToken } = await coordinator.client.tokens.create({ role: "user", subject: "ben" });
  const batch = { runs: Array.from({ length: 1000 }, () => ({ agent_name: "work" })) };
  const finished: string[] = [];
  const batches = Array.from({ length: 5 }, () => post("/runs/batch", batch).then(() => finished.push("ann")));
  await expect.poll(() => createdCounts.length).toBeGreaterThan(0);
  const one = { runs: [{ agent_name: "work" }] };
  await post("/runs/batch", one, { authorization: `Bearer ${otherToken}` }).then(() => finished.push("ben"));
  await Promise.all(batches);
  expect(finished).toHaveLength(6);
  expect(finished.at(-1)).toBe("ann");
});

test("names only the first faults of each run, so that a batch of invalid runs costs little", async () => {
  const invalid = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`parent_run_x${n}`, 1]));
  const response = await post("/runs/batch", { runs: Array.from({ length: 1000 }, () => invalid) });
  expect(response.status).toBe(200);
  expect(response.body.items).toHaveLength(1000);
  for (const { problem } of response.body.items) {
    expect(problem.faults).toHaveLength(5);
    expect(problem).toMatchObject({ status: 400, code: "DROVER-API-006" });
  }
});

test("keeps the response to a batch of refused runs short, whatever it quotes", async () => {
  const unknownNames = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`unknown${index}`, 1]));
  const runs = Array.from({ length: 250 }, (_, index) => {
    const name = `${"k".repeat(15_000)}${index}`;
    return [
      { agent_name: "work", parameters: { [name]: 1 } },
      { agent_name: "work", parameters: { n: 1 }, [name]: 1 },
      { agent_name: "work", parameters: { [name]: "[redacted:token]" } },
      { agent_name: "work", parameters: unknownNames },
    ];
  }).flat();
  const { status, body } = await post("/runs/batch", { runs });
  expect(status).toBe(200);
  expect(body.items.filter(({ problem }: { problem?: unknown }) => problem === undefined)).toEqual([]);
  expect(JSON.stringify(body).length).toBeLessThan(3_000_000);
});

test("gives the runs of a batch to a runner in their order", async () => {
  await coordinator.client.agents.put("sorted", { command: "true" });
  const items = await createClient({ url: coordinator.url, token }).submitAll(
    ["a", "b", "c"].map((task_id) => ({ agent_name: "sorted", task_id, demands: { tags: ["sorted"] } })),
  );
  const ids = items.map((item) => ("run" in item ? item.run.run_id : item.problem.detail));
  const runner = await coordinator.client.tokens.create({ role: "runner", subject: "ann" });
  const port = createHttpPort({ url: coordinator.url, token: runner.token });
  const registered = await port.register({
    ...registration("of the batch"),
    tags: ["sorted"],
    require_matching_tags: true,
  });
  const { runner_id, epoch } = registered;
  const poll = { runner_id, epoch, claim_id: "c", want: 3, ack_order: 0 };
  const { claims } = await port.poll(poll, AbortSignal.timeout(60_000));
  port.close();
  expect(claims.map(({ run_id }) => run_id)).toEqual(ids);
});
