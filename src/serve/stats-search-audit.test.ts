import { afterEach, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { buildFinish, numbered, recordRuns, sampleRun } from "../../test/fixtures/record/sample.ts";
import { write } from "../record/query.ts";
import { type ApiClient, createClient } from "../wire/client.ts";

let coordinator: TestCoordinator;
afterEach(() => coordinator.dispose());

async function setUp() {
  coordinator = await startTestCoordinator();
  const createUser = async (subject: string): Promise<ApiClient> => {
    const { token } = await coordinator.client.tokens.create({ role: "user", subject });
    return createClient({ url: coordinator.url, token });
  };
  const addFinishedRun = async (created_by: string, prompt: string) => {
    const run = sampleRun({ created_by, prompt });
    const events = numbered(run.run_id, 1, { type: "assistant", text: "hm" });
    await coordinator.store.apply([{ op: "create_run", run, events }, buildFinish(run.run_id)]);
    return run.run_id;
  };
  return { admin: coordinator.client, ann: await createUser("ann"), bob: await createUser("bob"), addFinishedRun };
}

const get = (path: string) =>
  rawCall(coordinator.url, { path, headers: { authorization: `Bearer ${coordinator.adminToken}` } });

test("statistics cover the caller's own runs, and all runs for an admin", async () => {
  const { admin, ann, bob, addFinishedRun } = await setUp();
  await addFinishedRun("ann", "one");
  await addFinishedRun("ann", "two");
  await addFinishedRun("bob", "three");
  const countFinished = async (client: ApiClient) => (await client.stats()).runs_finished;
  expect([await countFinished(admin), await countFinished(ann), await countFinished(bob)]).toEqual([3, 2, 1]);
  const { since, until, throughput, bucket_seconds } = await ann.stats();
  expect(bucket_seconds).toBe(900);
  expect(Date.parse(until) - Date.parse(since)).toBeGreaterThanOrEqual(86_400_000);
  expect(throughput.reduce((sum, { completed }) => sum + completed, 0)).toBe(2);
});

test("statistics refuse a reversed, too long or invalid span, and name the field", async () => {
  await setUp();
  for (const query of [
    "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
    "since=2026-01-01T00:00:00Z&until=2026-06-01T00:00:00Z",
    "since=yesterday",
    "since=2000-01-01T00:00:00Z",
  ]) {
    const { status, text } = await get(`/stats?${query}`);
    expect([query, status]).toEqual([query, 400]);
    expect(JSON.parse(text)).toMatchObject({ code: "DROVER-API-006", faults: [{ path: "query.since" }] });
  }
  expect((await get("/stats?since=2026-01-01T00:00:00%2B02:00&until=2026-03-31T00:00:00Z")).status).toBe(200);
});

test("a search finds the caller's own runs page by page, and all runs for an admin", async () => {
  const { admin, ann, addFinishedRun } = await setUp();
  const annsRuns = [
    await addFinishedRun("ann", "count the wolverines"),
    await addFinishedRun("ann", "wolverine again"),
  ];
  const bobsRun = await addFinishedRun("bob", "bob's wolverine");
  const ids = async (client: ApiClient) =>
    (await client.runs.list({ search: "wolverine" })).items.map((run) => run.run_id);
  expect(await ids(admin)).toEqual([bobsRun, ...annsRuns.toReversed()]);
  expect(await ids(ann)).toEqual(annsRuns.toReversed());
  const first = await ann.runs.list({ search: "wolverine", limit: 1 });
  expect(first).toMatchObject({ indexing: false, items: [{ match: { where: "prompt", seq: null } }] });
  const second = await ann.runs.list({ search: "wolverine", limit: 1, cursor: first.next_cursor! });
  expect(second.items.map((run) => run.run_id)).toEqual([annsRuns[0]]);
  await expect(ann.runs.list({ cursor: first.next_cursor! })).rejects.toMatchObject({ code: "DROVER-API-015" });
  expect((await ann.runs.list()).items[0]).not.toHaveProperty("match");
});

test("no search text causes a 5xx", async () => {
  const { addFinishedRun } = await setUp();
  await addFinishedRun("ann", "ordinary");
  const texts = [
    '"',
    "*",
    "a* OR",
    "NEAR(a)",
    "words:a",
    "'; drop table runs",
    "\0",
    "ordinary\0",
    "\\",
    "&|!",
    "🚢",
    "",
  ];
  for (const text of [...texts, "x".repeat(10_000), "x ".repeat(400), "é".repeat(999)]) {
    const { status, text: body } = await get(`/runs?search=${encodeURIComponent(text)}`);
    expect([200, 400], `${text.slice(0, 20)}: ${body.slice(0, 200)}`).toContain(status);
    if (status === 400) expect(JSON.parse(body)).toMatchObject({ faults: [{ path: "query.search" }] });
  }
  expect(coordinator.defects).toEqual([]);
});

test("shows the state of the audit chain, and verifies it without blocking writes", async () => {
  const { admin } = await setUp();
  await recordRuns(coordinator.store, 30);
  const state = await admin.audit.state();
  expect(state).toMatchObject({ rows: 60, key_present: true });
  expect(state.head).toBe(state.head_expected);
  expect(Date.parse(state.sealed_at!)).not.toBeNaN();
  const verifications = Promise.all([admin.audit.verify(), admin.audit.verify()]);
  await recordRuns(coordinator.store, 1);
  for (const result of await verifications) expect(result).toMatchObject({ whole: true, faults: [] });
  expect(await admin.audit.verify()).toMatchObject({ whole: true, rows: 62 });
});

test("a verification names the first fault", async () => {
  const { admin } = await setUp();
  await recordRuns(coordinator.store, 3);
  await coordinator.store.engine.write(function* () {
    yield write("update audit_rows set body = '{}' where no = 3");
  });
  expect(await admin.audit.verify()).toMatchObject({
    whole: false,
    rows: 2,
    faults: [{ row_no: 3, what: expect.stringContaining("changed") }],
  });
});
