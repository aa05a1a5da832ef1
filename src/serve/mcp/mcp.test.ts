import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { rawCall } from "../../../test/http-call.ts";
import {
  type Answer,
  getData,
  type Generation,
  startAgentsHost,
  getText,
} from "../../../test/fixtures/mcp/agents-host.ts";
import { createClient } from "../../wire/client.ts";

const generations: Generation[] = ["auto", "legacy"];
const parameters_schema = {
  type: "object",
  properties: { path: { type: "string" } },
  required: ["path"],
  additionalProperties: false,
};
/** Long enough that only a hang exceeds it. */
const callOptions = { timeout: 60_000 };

let host: Awaited<ReturnType<typeof startAgentsHost>>;
let ann: string;
let bob: string;
beforeEach(async () => {
  host = await startAgentsHost();
  const { agents } = host.coordinator.client;
  await agents.put("count", { command: "true", description: "Counts", parameters_schema, expose: "tool" });
  await agents.put("hidden", { command: "true" });
  await agents.put("thinker", { type: "autonomous", executor: "procedural", attended: true, expose: "tool" });
  ann = await host.tokenOf("user", "ann");
  bob = await host.tokenOf("user", "bob");
});
afterEach(async () => {
  expect(host.coordinator.defects).toEqual([]);
  await host.stop();
});

const getRun = (run_id: unknown) => host.coordinator.client.runs.get(String(run_id));
const startRun = async (token = ann): Promise<string> => {
  const client = await host.connect(token);
  return String(getData(await client.callTool({ name: "start_run", arguments: { agent: "hidden" } }))["run_id"]);
};

test.each([
  ["with a text", "10 files", ["10 files", expect.stringContaining("The result data has 300002 characters")]],
  ["without a text", null, [expect.stringContaining("The result data has 300002 characters")]],
])("says that result data was too large and was left out (%s)", async (_, text, expectedTexts) => {
  const client = await host.connect(ann);
  const call = client.callTool({ name: "run_count", arguments: { path: "src" } });
  const claim = await host.claim();
  await host.finish(claim, { status: "completed", exit_code: 0, text, data: "x".repeat(300_000) });
  const result = await call;
  expect(result.content).toEqual(expectedTexts.map((expected) => ({ type: "text", text: expected })));
  expect(result.structuredContent).toBeUndefined();
  const run = getData(await client.callTool({ name: "get_run", arguments: { run_id: claim.run_id } }));
  expect(run).not.toHaveProperty("result_data");
  expect(run["result_data_omitted"]).toContain(`drover runs show ${claim.run_id} --json`);
});

test.each(generations)("run_<agent> starts a run, sends progress and returns its result (%s)", async (mode) => {
  const client = await host.connect(ann, mode);
  const notifications: { progress: number; message?: string | undefined }[] = [];
  const call = client.callTool(
    { name: "run_count", arguments: { path: "src" } },
    { onprogress: (progress) => notifications.push(progress) },
  );
  const claim = await host.claim();
  expect(claim.invocation).toMatchObject({ parameters: { path: "src" } });
  await host.report(claim, { type: "progress", percent: 40, message: "counting" });
  await expect.poll(() => notifications.map(({ message }) => message), callOptions).toContain("40 %: counting");
  await host.finish(claim, { status: "completed", exit_code: 0, text: '{"files":3}', data: { files: 3 } });
  const result = await call;
  expect(getText(result)).toBe('{"files":3}');
  expect(result).toMatchObject({ structuredContent: { files: 3 }, _meta: { "drover/run_id": claim.run_id } });
  expect(result.isError).toBeFalsy();
  expect(notifications[0]?.message).toBe(`run ${claim.run_id} started`);
  const numbers = notifications.map(({ progress }) => progress);
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  expect(await getRun(claim.run_id)).toMatchObject({
    created_by: "ann",
    trigger_type: "agent",
    parent_run_id: null,
    agent_name: "count",
  });
});

test.each(generations)("a failed run is a tool error with reason and message (%s)", async (mode) => {
  const client = await host.connect(ann, mode);
  const call = client.callTool({ name: "run_count", arguments: { path: "x" } });
  const claim = await host.claim();
  await host.finish(claim, { status: "failed", reason: "exit_nonzero", message: "no such directory", exit_code: 3 });
  const result = await call;
  expect(result.isError).toBe(true);
  expect(getData(result)).toMatchObject({
    run_id: claim.run_id,
    status: "failed",
    reason: "exit_nonzero",
    message: "no such directory",
  });
});

test("wraps a result that is not an object for clients that accept only objects", async () => {
  const client = await host.connect(ann, "legacy");
  const call = client.callTool({ name: "run_count", arguments: { path: "x" } });
  await host.finish(await host.claim(), { status: "completed", exit_code: 0, text: "[1]", data: [1] });
  expect(await call).toMatchObject({ structuredContent: { result: [1] } });
});

test("lists six built-in tools and the exposed agents with their schemas", async () => {
  const client = await host.connect(ann);
  const { tools } = await client.listTools();
  const builtIn = ["list_agents", "start_run", "get_run", "wait_run", "stop_run", "answer_question"];
  expect(tools.map(({ name }) => name)).toEqual([...builtIn, "run_count", "run_thinker"]);
  expect(tools.find(({ name }) => name === "run_count")).toMatchObject({
    description: "Counts",
    inputSchema: parameters_schema,
  });
  const { agents } = getData(await client.callTool({ name: "list_agents", arguments: {} }));
  expect(agents).toMatchObject([
    { name: "count", tool: "run_count", parameters: ["path"] },
    { name: "hidden" },
    { name: "thinker" },
  ]);
  const one = getData(await client.callTool({ name: "list_agents", arguments: { agent: "count" } }));
  expect(one).toMatchObject({ name: "count", parameters_schema });
});

test("refuses invalid arguments by their path without starting a run", async () => {
  const client = await host.connect(ann);
  const before = (await host.coordinator.client.runs.list()).items.length;
  const cases: [string, Record<string, unknown>, string, string][] = [
    ["run_count", { path: 7 }, "DROVER-PAR-001", "body.parameters.path"],
    ["run_count", { path: "x", more: 1 }, "DROVER-PAR-001", "body.parameters"],
    ["run_thinker", { prompt: 7 }, "DROVER-API-006", "arguments.prompt"],
    ["run_thinker", { shout: "x" }, "DROVER-API-006", "arguments"],
    ["run_thinker", { prompt: "x", agent_name: "hidden" }, "DROVER-API-006", "arguments"],
    ["start_run", { agent: "hidden", priority: 9 }, "DROVER-API-006", "arguments"],
    ["start_run", {}, "DROVER-API-006", "arguments.agent"],
    ["start_run", { agent: "hiden" }, "DROVER-SUB-001", "body.agent_name"],
    ["wait_run", { run_id: "x", timeout_seconds: -1 }, "DROVER-API-006", "arguments.timeout_seconds"],
  ];
  for (const [name, input, code, path] of cases) {
    const result = await client.callTool({ name, arguments: input });
    expect([name, input, result.isError, getData(result)]).toMatchObject([
      name,
      input,
      true,
      { code, faults: expect.arrayContaining([expect.objectContaining({ path: expect.stringContaining(path) })]) },
    ]);
  }
  const unknown = await client.callTool({ name: "run_hidden", arguments: {} });
  expect(getData(unknown)).toMatchObject({ code: "DROVER-MCP-002" });
  expect((await host.coordinator.client.runs.list()).items).toHaveLength(before);
});

test("treats another user's run like an unknown one in every tool", async () => {
  const run_id = await startRun();
  const client = await host.connect(bob);
  for (const id of [run_id, "0190aaaa-0000-7000-8000-000000000009", "../runs"])
    for (const [name, otherArguments] of [
      ["get_run", {}],
      ["wait_run", {}],
      ["stop_run", {}],
      ["answer_question", { request_id: "r", decision: "allow" }],
    ] as const) {
      const result = await client.callTool({ name, arguments: { run_id: id, ...otherArguments } });
      expect([name, result.isError, getData(result)]).toMatchObject([name, true, { code: "DROVER-API-014" }]);
    }
  expect(getData(await client.callTool({ name: "get_run", arguments: {} }))).toEqual({ runs: [] });
  expect(await getRun(run_id)).toMatchObject({ status: "pending" });
  const own = await host.connect(ann);
  const { runs } = getData(await own.callTool({ name: "get_run", arguments: {} }));
  expect(runs).toContainEqual(expect.objectContaining({ run_id, status: "pending" }));
  expect(getData(await own.callTool({ name: "stop_run", arguments: { run_id } }))).toMatchObject({
    status: "cancelled",
  });
});

test("a viewer sees runs and agents but cannot start, stop or answer", async () => {
  const run_id = await startRun();
  const client = await host.connect(await host.tokenOf("viewer", "ann"));
  expect(getData(await client.callTool({ name: "get_run", arguments: { run_id } }))).toMatchObject({ run_id });
  const calls: [string, Record<string, unknown>][] = [
    ["start_run", { agent: "hidden" }],
    ["run_count", { path: "x" }],
    ["stop_run", { run_id }],
    ["answer_question", { run_id, request_id: "r", decision: "allow" }],
  ];
  for (const [name, input] of calls) {
    const result = await client.callTool({ name, arguments: input });
    expect([name, result.isError, getData(result)]).toMatchObject([name, true, { code: "DROVER-API-011" }]);
  }
  await host.coordinator.client.runs.stop(run_id);
});

test("wait_run returns on timeout, and later with the result", async () => {
  const run_id = await startRun();
  const client = await host.connect(ann);
  const early = await client.callTool({ name: "wait_run", arguments: { run_id, timeout_seconds: 0.05 } });
  expect(getData(early)).toMatchObject({ run_id, status: "pending", next: expect.stringContaining("wait_run") });
  const late = client.callTool({ name: "wait_run", arguments: { run_id } });
  await host.finish(await host.claim(), { status: "completed", exit_code: 0, text: "done" });
  expect(getData(await late)).toMatchObject({ run_id, status: "completed", result_text: "done" });
});

test("returns a run's question, and the run continues with the answer", async () => {
  const client = await host.connect(ann);
  const call = client.callTool({ name: "run_thinker", arguments: { prompt: "go" } });
  const claim = await host.claim();
  const { run_id } = claim;
  await host.report(claim, { type: "permission_request", request_id: "q1", tool: "shell", input: { command: "ls" } });
  expect(getData(await call)).toMatchObject({
    run_id,
    status: "waiting",
    questions: [{ request_id: "q1", tool: "shell", input: { command: "ls" } }],
  });
  const result = await client.callTool({
    name: "answer_question",
    arguments: { run_id, request_id: "q1", decision: "allow" },
  });
  expect(getData(result)).toMatchObject({ decision: "allow", answered_by: "ann" });
  const wait = client.callTool({ name: "wait_run", arguments: { run_id } });
  await host.report(claim, { type: "permission_decision", request_id: "q1", decision: "allow", by: "ann" });
  await host.finish(claim, { status: "completed", exit_code: null, text: "listed" });
  expect(getData(await wait)).toMatchObject({ status: "completed", result_text: "listed" });
  const secondAnswer = await client.callTool({
    name: "answer_question",
    arguments: { run_id, request_id: "q1", decision: "deny" },
  });
  expect(secondAnswer.isError).toBe(true);
  expect(getData(secondAnswer)).toMatchObject({ code: "DROVER-API-031" });
});

test.each(generations)("neither a cancelled call nor a disconnected client ends the run (%s)", async (mode) => {
  const client = await host.connect(ann, mode);
  const call = async (signal: AbortSignal): Promise<Answer> =>
    client.callTool({ name: "run_count", arguments: { path: "x" } }, { signal });
  const cancel = new AbortController();
  const cancelled = call(cancel.signal);
  const first = await host.claim();
  cancel.abort("enough");
  await expect(cancelled).rejects.toThrow();
  const abandoned = call(new AbortController().signal).catch((error: unknown) => error);
  const second = await host.claim();
  await client.close();
  expect(await abandoned).toBeInstanceOf(Error);
  for (const claim of [first, second]) {
    await host.report(claim, { type: "progress", percent: 50 });
    expect(await getRun(claim.run_id)).toMatchObject({ status: "running" });
    await host.finish(claim, { status: "completed", exit_code: 0, text: "survived" });
  }
  const next = await host.connect(ann, mode);
  const survivor = await next.callTool({ name: "get_run", arguments: { run_id: second.run_id } });
  expect(getData(survivor)).toMatchObject({ status: "completed", result_text: "survived" });
});

/** Sends the raw request of a tool call. */
function callTool(token: string, name: string, input: unknown, signal?: AbortSignal): Promise<Response> {
  return fetch(`${host.coordinator.url}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: input } }),
    ...(signal ? { signal } : {}),
  });
}

test("limits a caller to 64 open calls, and releases those of disconnected clients", async () => {
  const token = await host.tokenOf("user", "crowd");
  const run_id = await startRun(token);
  const disconnect = new AbortController();
  const wait = (signal?: AbortSignal) => callTool(token, "wait_run", { run_id, timeout_seconds: 600 }, signal);
  const openCalls = await Promise.all(Array.from({ length: 64 }, () => wait(disconnect.signal)));
  expect(new Set(openCalls.map(({ status }) => status))).toEqual(new Set([200]));
  const refused = await wait();
  expect([refused.status, await refused.json()]).toMatchObject([429, { code: "DROVER-MCP-001" }]);
  // Other callers are not affected.
  expect((await (await host.connect(bob)).listTools()).tools.length).toBeGreaterThan(0);
  disconnect.abort();
  await vi.waitFor(async () => {
    const one = new AbortController();
    const { status } = await wait(one.signal);
    one.abort();
    expect(status).toBe(200);
  }, callOptions);
  expect(await getRun(run_id)).toMatchObject({ status: "pending" });
});

test("revoking a token ends its open call but not the run", async () => {
  const { token, token_id } = await host.coordinator.client.tokens.create({ role: "user", subject: "eve" });
  const call = await callTool(token, "run_count", { path: "x" });
  const claim = await host.claim();
  await host.coordinator.client.tokens.revoke(token_id);
  await expect(call.text()).rejects.toThrow();
  expect((await callTool(token, "list_agents", {})).status).toBe(401);
  await host.finish(claim, { status: "completed", exit_code: 0, text: "survived" });
  expect(await getRun(claim.run_id)).toMatchObject({ status: "completed", created_by: "eve" });
});

test("an attempt token starts, follows and stops only its own run's children", async () => {
  const parent = await startRun();
  const claim = await host.claim();
  const attemptClient = await host.connect(claim.attempt_token);
  const call = attemptClient.callTool({ name: "run_count", arguments: { path: "x" } });
  const child = await host.claim();
  expect(await getRun(child.run_id)).toMatchObject({
    parent_run_id: parent,
    created_by: "ann",
    trigger_type: "agent",
  });
  await host.finish(child, { status: "completed", exit_code: 0, text: "for my parent" });
  expect(getText(await call)).toBe("for my parent");
  const second = getData(await attemptClient.callTool({ name: "start_run", arguments: { agent: "hidden" } }));
  const stopped = await attemptClient.callTool({ name: "stop_run", arguments: { run_id: second["run_id"] } });
  expect(getData(stopped)).toMatchObject({ status: "cancelled" });
  const sibling = await startRun();
  for (const name of ["get_run", "wait_run", "stop_run"]) {
    const result = await attemptClient.callTool({ name, arguments: { run_id: sibling } });
    expect([name, getData(result)]).toMatchObject([name, { code: "DROVER-API-014" }]);
  }
  await host.coordinator.client.runs.stop(sibling);
  await host.finish(claim, { status: "completed", exit_code: 0, text: "" });
});

test("refuses a run that is nested more than eight levels deep", async () => {
  let token = ann;
  const claims = [];
  for (let depth = 0; depth <= 8; depth += 1) {
    await startRun(token);
    const claim = await host.claim();
    claims.push(claim);
    token = claim.attempt_token;
  }
  const attemptClient = await host.connect(token);
  const result = await attemptClient.callTool({ name: "run_count", arguments: { path: "x" } });
  expect(result.isError).toBe(true);
  expect(getData(result)).toMatchObject({ code: "DROVER-SUB-007" });
  for (const claim of claims) await host.finish(claim, { status: "completed", exit_code: 0, text: "" });
});

test("refuses a wrong token, a foreign Host or Origin, and an invalid message", async () => {
  const { url } = host.coordinator;
  const message = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const headers = { authorization: `Bearer ${ann}`, "content-type": "application/json" };
  const post = (extraHeaders: Record<string, string>, body: string) =>
    rawCall(url, { method: "POST", path: "/mcp", headers: { ...headers, ...extraHeaders }, body });
  const status = async (extraHeaders: Record<string, string>, body = message) =>
    (await post(extraHeaders, body)).status;
  expect(await status({ authorization: "Bearer drv_wrong" })).toBe(401);
  expect(await status({ host: "evil.example" })).toBe(403);
  expect(await status({ origin: "http://evil.example" })).toBe(403);
  expect(await status({ "content-type": "text/plain" })).toBe(415);
  expect(await status({}, "{")).toBe(400);
  expect(await status({}, `[${message}]`)).toBe(400);
  expect(await status({}, JSON.stringify({ jsonrpc: "2.0", id: 1, padding: "x".repeat(5 * 1024 * 1024) }))).toBe(413);
  for (const method of ["GET", "DELETE"]) {
    const result = await rawCall(url, { method, path: "/mcp", headers });
    expect([method, result.status, result.headers["allow"]]).toEqual([method, 405, "POST"]);
  }
  await expect(createClient({ url, token: ann }).me()).resolves.toMatchObject({ subject: "ann" });
});
