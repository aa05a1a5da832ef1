import { request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { claimOverHttp, type ClaimedRun } from "../../test/fixtures/dispatch/claimed.ts";
import { rawCall } from "../../test/http-call.ts";

let coordinator: TestCoordinator;
let run: ClaimedRun;
beforeAll(async () => {
  coordinator = await startTestCoordinator({ pollHoldMs: 20, leaseMs: 3_600_000 });
  run = await claimOverHttp(coordinator, "large");
});
afterAll(async () => {
  run.port.close();
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
});

const post = async (path: string, body: unknown) => {
  const headers = { authorization: `Bearer ${coordinator.adminToken}`, "content-type": "application/json" };
  const { status, text } = await rawCall(coordinator.url, {
    method: "POST",
    path,
    headers,
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status, json: JSON.parse(text) };
};
const repeat = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const names = (count: number) => Object.fromEntries(repeat(count, (index) => [`name${index}`, index]));
const agent = (name: string, changes: object = {}) => ({ name, command: "true", ...changes });

test.each([
  ["more than 2 MB", { project_dir: "x".repeat(3_000_000) }, 413],
  ["1,001 agents", { agents: repeat(1001, (index) => agent(`a${index}`)) }, 400],
  ["an agent of 300 KB", { agents: [agent("a", { description: "x".repeat(300_000) })] }, 400],
  ["many different names", { executor: { type: "procedural", config: names(26_000) } }, 413],
  ["a large configuration", { executor: { type: "procedural", config: { text: "x".repeat(300_000) } } }, 400],
  ["101 tags", { tags: repeat(101, String) }, 400],
  ["a long tag", { tags: ["x".repeat(401)] }, 400],
  ["many values", { tags: repeat(600_000, () => 1) }, 413],
  ["20 MB in one name", { executor_profile: "x".repeat(20_000_000) }, 413],
  ["20 MB that are escaped", { hostname: "\u0000".repeat(3_400_000) }, 413],
  ["20 MB in an unknown field", { more: "x".repeat(20_000_000) }, 413],
  ["20 MB in a key", { ["x".repeat(20_000_000)]: 1 }, 413],
  ["the same agent 1,001 times", { agents: repeat(1001, () => agent("same")) }, 400],
  ["a schema of many names", { agents: [agent("a", { parameters_schema: { properties: names(26_000) } })] }, 413],
  ["a long command", { agents: [agent("a", { command: "x".repeat(300_000) })] }, 400],
])("refuses a registration with %s", async (_what, changes, status) => {
  const response = await post("/runner/register", { ...registration("heavy"), ...changes });
  expect(response).toMatchObject({ status, json: { code: expect.stringMatching(/^DROVER-API-00[36]$/) } });
});

test("accepts a save of as many files as a session may have, and refuses more", async () => {
  const save = (count: number) =>
    post("/runner/session/save", {
      ...run.runner,
      run_id: run.run_id,
      attempt: run.attempt,
      n: 0,
      events: [],
      format: "test",
      bytes: "",
      portable: true,
      files: repeat(count, (index) => ({ path: `d/${index}`, type: "file", bytes: "" })),
    });
  expect(await save(42_001)).toMatchObject({ status: 400, json: { code: "DROVER-API-006" } });
  expect(await save(42_000)).toMatchObject({ status: 200, json: { save: "saved" } });
});

test("refuses a deeply nested registration", async () => {
  const list: unknown = JSON.parse("[".repeat(500) + "]".repeat(500));
  const executor = { type: "procedural", config: { list } };
  expect(await post("/runner/register", { ...registration("heavy"), executor })).toMatchObject({
    status: 400,
    json: { code: "DROVER-API-004" },
  });
});

test("refuses an endless registration without a Content-Length", async () => {
  const clientRequest = request(`${coordinator.url}/runner/register`, {
    method: "POST",
    headers: { authorization: `Bearer ${coordinator.adminToken}`, "content-type": "application/json" },
  });
  const whenEnded = new Promise<number | undefined>((resolve) => {
    clientRequest.on("response", ({ statusCode }) => resolve(statusCode)).on("error", () => resolve(413));
  });
  clientRequest.write('{"hostname":"');
  const piece = Buffer.alloc(64 * 1024, "x");
  const writeMore = (): void =>
    void (clientRequest.destroyed || clientRequest.write(piece, () => setImmediate(writeMore)));
  writeMore();
  expect(await whenEnded).toBe(413);
  clientRequest.destroy();
});

test("accepts a runner with the maximum number of agents", async () => {
  const agents = repeat(1000, (index) => agent(`brought${index}`));
  expect((await post("/runner/register", { ...registration("many"), name: "many", agents })).status).toBe(200);
  expect((await coordinator.client.agents.get("brought999")).name).toBe("brought999");
});

test.each([
  ["one of 900 KB", { ["x".repeat(900_000)]: 1 }, 1],
  ["a long one that resembles a known field", { [`agent_name${"e".repeat(900_000)}`]: 1 }, 1],
  ["a nested one of 900 KB", { continue: { ["x".repeat(900_000)]: 1 } }, 1],
  ["3,000 of them", names(3000), 50],
  ["3,000 longer ones", Object.fromEntries(repeat(3000, (index) => [`${index}${"x".repeat(250)}`, 1])), 50],
])("the refusal of unknown fields (%s) is short", async (_what, fields, count) => {
  const { status, json } = await post("/runs", { agent_name: "echo", ...fields });
  expect([status, json.code]).toEqual([400, "DROVER-API-006"]);
  expect(json.faults.length).toBeLessThanOrEqual(count);
  expect(JSON.stringify(json).length).toBeLessThan(20_000);
});

const emptyReport = () => ({
  ...run.runner,
  held: [[run.run_id, 1]],
  as_of_claim: "c",
  events: [],
  partials: [],
  finishes: [],
});
const at = "2026-01-01T00:00:00.000Z";

test.each([
  ["a result in the log", { n: 1, at, event: { type: "result", status: "completed" } }],
  ["number 0", { n: 0, at, event: { type: "assistant", text: "x" } }],
  ["a negative number", { n: -1, at, event: { type: "assistant", text: "x" } }],
  ["a fraction as its number", { n: 1.5, at, event: { type: "assistant", text: "x" } }],
  ["a number above the maximum", { n: 2 ** 53, at, event: { type: "assistant", text: "x" } }],
  ["no time", { n: 1, at: "NaN", event: { type: "assistant", text: "x" } }],
  ["an empty time", { n: 1, at: "", event: { type: "assistant", text: "x" } }],
  ["a time zone", { n: 1, at: "2026-01-01T00:00:00+14:00", event: { type: "assistant", text: "x" } }],
  ["an invalid day", { n: 1, at: "2026-13-45T00:00:00Z", event: { type: "assistant", text: "x" } }],
  ["an unknown type", { n: 1, at, event: { type: "admin" } }],
  ["prototype keys", { n: 1, at, event: { type: "system", subtype: "x", data: { constructor: 1 } } }],
])("refuses an event with %s and stores nothing of the report", async (_what, numbered) => {
  const events = [{ run_id: run.run_id, attempt: 1, events: [numbered] }];
  expect((await post("/runner/report", { ...emptyReport(), events })).status).toBe(400);
  expect((await coordinator.client.runs.get(run.run_id)).status).toBe("claimed");
});

test("the refusal of a long number is short", async () => {
  const number = "1".repeat(900_000);
  const { status, json } = await post("/runs", `{"agent_name":"echo","parameters":{"n":${number}}}`);
  expect([status, json.code]).toEqual([400, "DROVER-PAR-005"]);
  expect(JSON.stringify(json).length).toBeLessThan(2000);
});

test("refuses a report that holds more runs than a runner has slots", async () => {
  const held = repeat(10_001, (index) => [`run-${index}`, 1]);
  const { status, json } = await post("/runner/report", { ...emptyReport(), held });
  expect([status, json.code]).toEqual([400, "DROVER-API-006"]);
});

test("refuses a report with more than 20,000 entries before validating them", async () => {
  const event = { type: "progress", percent: 1 };
  const events = [{ run_id: run.run_id, attempt: 1, events: repeat(20_001, (index) => ({ n: index + 1, at, event })) }];
  expect((await post("/runner/report", { ...emptyReport(), events })).json).toMatchObject({ code: "DROVER-API-006" });
});

test("replaces a large event, acknowledges many in parts, and keeps pages small", async () => {
  const { run_id } = run;
  const text = (size: number) => ({ type: "assistant", text: "x".repeat(size) });
  const sentEvents = [text(3), text(8_000_000), ...repeat(2500, () => text(3)), ...repeat(8, () => text(400_000))];
  const numbered = sentEvents.map((event, index) => ({ n: index + 1, at, event }));
  let acked = 0;
  let reports = 0;
  while (acked < numbered.length) {
    const events = [{ run_id, attempt: 1, events: numbered.slice(acked) }];
    const { status, json } = await post("/runner/report", { ...emptyReport(), events });
    expect(status).toBe(200);
    expect(json.acked[0].n).toBeGreaterThan(acked);
    acked = json.acked[0].n;
    reports += 1;
  }
  expect(reports).toBeGreaterThan(1);
  const seen: { seq: number; type: string }[] = [];
  for (let after: number | null = 0; after !== null;) {
    const page = await coordinator.client.runs.events(run_id, { after, limit: 1000 });
    expect(JSON.stringify(page).length).toBeLessThan(1_000_000);
    seen.push(...page.items.filter(({ n }) => n !== null).map(({ seq, event }) => ({ seq, type: event.type })));
    after = page.next_cursor;
  }
  expect(seen).toHaveLength(numbered.length);
  expect(seen[1]).toMatchObject({ type: "error" });
});

test("stores a result of 16 MB unchanged", async () => {
  const large = await claimOverHttp(coordinator, "result");
  const data = { text: "y".repeat(16_000_000) };
  const outcome = { status: "completed", exit_code: 0, text: null, data } as const;
  await large.report({ finishes: [{ run_id: large.run_id, attempt: 1, last_n: 0, outcome }] });
  const { status, result_data } = await coordinator.client.runs.get(large.run_id);
  expect([status, JSON.stringify(result_data) === JSON.stringify(data)]).toEqual(["completed", true]);
  const { items } = await coordinator.client.runs.events(large.run_id, { limit: 1000 });
  expect(items.length).toBeGreaterThan(0);
  large.port.close();
});
