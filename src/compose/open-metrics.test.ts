import { request } from "node:http";
import { afterEach, expect, it } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { freshDatabase } from "../../test/postgres/fresh-database.ts";
import type { CoordinatorOptions } from "../coordinator.ts";
import type { Outcome } from "../model/executor.ts";
import type { RegistrationResult } from "../model/runner-port.ts";

const disposals: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const dispose of disposals.splice(0).toReversed()) await dispose();
});

const engines = { SQLite: async () => ({}), PostgreSQL: async () => ({ database: await createDatabase() }) };

async function createDatabase() {
  const { url, drop } = await freshDatabase();
  disposals.push(drop);
  return { url, secret: Buffer.alloc(32, 7), drop };
}

async function start(options: Partial<CoordinatorOptions>): Promise<TestCoordinator> {
  const coordinator = await startTestCoordinator(options);
  disposals.push(async () => {
    await coordinator.dispose();
    expect(coordinator.defects).toEqual([]);
  });
  await coordinator.client.agents.put("work", { type: "procedural", command: "true" });
  await coordinator.client.agents.put("retried", { type: "procedural", command: "true", max_attempts: 2 });
  return coordinator;
}

/** Maps each name with its labels to its value. */
async function scrape({ url, adminToken }: TestCoordinator): Promise<Map<string, number>> {
  const headers: Record<string, string> = adminToken === "" ? {} : { authorization: `Bearer ${adminToken}` };
  const { status, text } = await rawCall(url, { path: "/metrics", headers });
  expect(status).toBe(200);
  const samples = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(samples.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]));
}

const completedOutcome: Outcome = { status: "completed", exit_code: 0, text: "done" };
const failedOutcome: Outcome = { status: "failed", reason: "exit_nonzero", message: "no", exit_code: 1 };

function createRunner({ port }: TestCoordinator, { runner_id, epoch }: RegistrationResult) {
  const speaker = { runner_id, epoch };
  return {
    runner_id,
    claim: async (claim_id: string, want = 10) =>
      (await port.poll({ ...speaker, claim_id, want, ack_order: 0 }, AbortSignal.timeout(60_000))).claims,
    finish: (claim: { run_id: string; attempt: number }, outcome: Outcome) => {
      const { run_id, attempt } = claim;
      const at = new Date().toISOString();
      const event = { type: "output", stream: "stdout", text: "x" } as const;
      return port.report({
        ...speaker,
        held: [],
        as_of_claim: null,
        partials: [],
        events: [{ run_id, attempt, events: [{ n: 1, at, event }] }],
        finishes: [{ run_id, attempt, last_n: 1, outcome }],
      });
    },
  };
}

it.each(Object.entries(engines))("counts on %s each state change of a run once", async (_, engine) => {
  const coordinator = await start({ ...(await engine()), leaseMs: 600_000 });
  const { client, port } = coordinator;
  const runner = createRunner(coordinator, await port.register(registration("counted")));
  const submitted = [];
  for (const agent_name of ["work", "work", "work"]) submitted.push(await client.submit({ agent_name }));
  const claims = await runner.claim("c1");
  // As if the response was lost, the runner repeats the claim.
  expect(await runner.claim("c1")).toEqual(claims);
  expect(claims.map(({ run_id }) => run_id)).toEqual(submitted.map(({ run_id }) => run_id));
  await runner.finish(claims[0]!, completedOutcome);
  await runner.finish(claims[0]!, completedOutcome);
  await runner.finish(claims[1]!, failedOutcome);
  await client.runs.stop((await client.submit({ agent_name: "work", demands: { tags: ["none"] } })).run_id);

  const values = await scrape(coordinator);
  expect(Object.fromEntries(values)).toMatchObject({
    drover_runs_submitted_total: 4,
    drover_runs_claimed_total: 3,
    'drover_runs_finished_total{status="completed",reason=""}': 1,
    'drover_runs_finished_total{status="failed",reason="exit_nonzero"}': 1,
    'drover_runs_finished_total{status="failed",reason="runner_lost"}': 0,
    'drover_runs_finished_total{status="cancelled",reason=""}': 1,
    drover_run_queue_seconds_count: 3,
    'drover_run_queue_seconds_bucket{le="+Inf"}': 3,
    drover_run_start_seconds_count: 2,
    'drover_run_duration_seconds_count{status="completed"}': 1,
    'drover_run_duration_seconds_count{status="failed"}': 1,
    drover_events_received_total: 3,
    'drover_runs{status="pending"}': 0,
    'drover_runs{status="claimed"}': 1,
    'drover_runners{status="online"}': 1,
    'drover_runner_slots{status="online"}': 10,
    'drover_fenced_writes_total{op="finish_run"}': 0,
    drover_audit_rows_total: 0,
    drover_store_up: 1,
    drover_store_down_seconds_total: 0,
  });
});

it.each(Object.entries(engines))(
  "counts on %s lost runners, requeued runs and refused reports of earlier attempts",
  async (_, engine) => {
    const coordinator = await start({ ...(await engine()), leaseMs: 6000, rescueEveryMs: 50 });
    const { client, port } = coordinator;
    const singleAttempt = await client.submit({ agent_name: "work" });
    const twoAttempts = await client.submit({ agent_name: "retried" });
    const lostRunner = createRunner(coordinator, await port.register(registration("lost")));
    const claims = await lostRunner.claim("c1");
    await expect.poll(async () => (await client.runs.get(singleAttempt.run_id)).status).toBe("failed");
    expect((await client.runs.get(twoAttempts.run_id)).status).toBe("pending");
    await expect(lostRunner.finish(claims[0]!, completedOutcome)).rejects.toMatchObject({ conflict: "unknown_runner" });

    const values = await scrape(coordinator);
    expect(Object.fromEntries(values)).toMatchObject({
      drover_runners_lost_total: 1,
      'drover_runs_requeued_total{cause="lost"}': 1,
      'drover_runs_requeued_total{cause="returned"}': 0,
      'drover_runs_finished_total{status="failed",reason="runner_lost"}': 1,
      'drover_run_duration_seconds_count{status="failed"}': 1,
      'drover_fenced_writes_total{op="finish_run"}': 1,
      drover_audit_rows_total: 1,
      'drover_runners{status="lost"}': 1,
      'drover_runs{status="pending"}': 1,
    });
    expect(values.get("drover_oldest_pending_seconds")).toBeGreaterThan(0);
  },
);

it.each(Object.entries(engines))("counts on %s operations and commits separately", async (_, engine) => {
  const coordinator = await start({ ...(await engine()), rescueEveryMs: 3_600_000 });
  const before = await scrape(coordinator);
  await Promise.all(Array.from({ length: 40 }, () => coordinator.client.submit({ agent_name: "work" })));
  for (let n = 0; n < 5; n += 1) await coordinator.client.submit({ agent_name: "work" });
  const after = await scrape(coordinator);
  const countIncrease = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
  expect(countIncrease('drover_store_operations_total{op="create_run"}')).toBe(45);
  expect(countIncrease("drover_store_apply_seconds_count")).toBe(45);
  // Sequential submissions cannot have shared a commit.
  expect(countIncrease("drover_store_commits_total")).toBeGreaterThanOrEqual(6);
  expect(countIncrease("drover_store_commits_total")).toBeLessThanOrEqual(45);
  expect(countIncrease('drover_http_requests_total{method="post",path="/runs",status="201"}')).toBe(45);
  expect(countIncrease('drover_http_request_duration_seconds_count{method="post",path="/runs"}')).toBe(45);
});

it("counts one commit for operations that are applied together", async () => {
  const coordinator = await start({ rescueEveryMs: 3_600_000 });
  const { store } = coordinator;
  const before = (await scrape(coordinator)).get("drover_store_commits_total") ?? 0;
  const drain = { op: "drain_runner", runner_id: "nobody", draining: true } as const;
  await Promise.all([store.apply([drain, drain]), store.apply([drain])]);
  await store.apply([drain]);
  const values = await scrape(coordinator);
  expect(values.get('drover_store_operations_total{op="drain_runner"}')).toBe(4);
  expect(values.get("drover_store_commits_total")).toBe(before + 2);
});

it("counts open event streams and waiting polls", async () => {
  const coordinator = await start({ pollHoldMs: 600_000, leaseMs: 600_000 });
  const { url, adminToken, port } = coordinator;
  const { runner_id, epoch } = await port.register(registration("waits"));
  const disconnect = new AbortController();
  const poll = port.poll({ runner_id, epoch, claim_id: "c", want: 1, ack_order: 0 }, disconnect.signal);
  const headers = { accept: "text/event-stream", authorization: `Bearer ${adminToken}` };
  const reader = request(`${url}/events`, { headers, agent: false });
  reader.on("error", () => undefined); // The test destroys it below.
  reader.end();
  const countWaiting = async () => {
    const values = await scrape(coordinator);
    return [values.get("drover_event_streams"), values.get("drover_held_polls")];
  };
  await expect.poll(countWaiting).toEqual([1, 1]);
  disconnect.abort();
  reader.destroy();
  await poll;
  await expect.poll(countWaiting).toEqual([0, 0]);
});

it("groups requests without a route or with the wrong host under one label", async () => {
  const coordinator = await start({});
  await rawCall(coordinator.url, { path: "/made-up" });
  await rawCall(coordinator.url, { path: "/runs", headers: { host: "elsewhere.example" } });
  const values = await scrape(coordinator);
  expect(values.get('drover_http_requests_total{method="any",path="none",status="404"}')).toBe(1);
  expect(values.get('drover_http_requests_total{method="any",path="none",status="403"}')).toBe(1);
});

it("reports its build, memory, uptime and disk", async () => {
  const coordinator = await start({ version: "1.2.3" });
  const values = await scrape(coordinator);
  const build = `drover_build_info{version="1.2.3",engine="sqlite",node="${process.versions.node}"}`;
  expect(values.get(build)).toBe(1);
  expect(values.get("process_cpu_seconds_total")).toBeGreaterThan(0);
  expect(values.get("process_resident_memory_bytes")).toBeGreaterThan(1e6);
  expect(values.get("nodejs_heap_size_used_bytes")).toBeGreaterThan(1e6);
  expect(values.get("process_start_time_seconds")).toBeLessThanOrEqual(Date.now() / 1000);
  expect(values.get("drover_disk_free_bytes")).toBeGreaterThan(0);
  for (const quantile of ["0.5", "0.99", "1"])
    expect(values.get(`drover_event_loop_delay_seconds{quantile="${quantile}"}`)).toBeGreaterThanOrEqual(0);
});

it("still serves metrics when the database is unreachable, and reports the outage", async () => {
  const database = await createDatabase();
  // Without auth, because the token lookup would fail too.
  const coordinator = await startTestCoordinator({ database, authEnabled: false, rescueEveryMs: 50 });
  disposals.push(coordinator.dispose);
  expect(Object.fromEntries(await scrapeWithoutToken())).toMatchObject({
    drover_store_up: 1,
    'drover_runs{status="pending"}': 0,
  });
  await database.drop();
  await expect.poll(async () => (await scrapeWithoutToken()).get("drover_store_up")).toBe(0);
  const values = await scrapeWithoutToken();
  expect(values.get("drover_store_down_seconds_total")).toBeGreaterThan(0);
  expect([...values.keys()].filter((name) => name.startsWith("drover_store_faults_total"))).not.toEqual([]);
  // Unknown values are omitted.
  expect(values.has('drover_runs{status="pending"}')).toBe(false);

  async function scrapeWithoutToken(): Promise<Map<string, number>> {
    return scrape({ ...coordinator, adminToken: "" });
  }
});
