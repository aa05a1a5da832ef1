import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { openDatabase } from "../record/sqlite/driver.ts";
import { createClient } from "../wire/client.ts";
import type { Operation } from "./openapi-document.ts";

let directory: string;
let coordinator: TestCoordinator;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "drover-api-"));
  const agentsDirectory = join(directory, "agents");
  mkdirSync(agentsDirectory);
  writeFileSync(
    join(agentsDirectory, "filed.json"),
    JSON.stringify({ name: "filed", type: "procedural", command: "true" }),
  );
  coordinator = await startTestCoordinator({ agentsDirectory, leaseMs: 600_000 });
});
afterAll(async () => {
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
  rmSync(directory, { recursive: true, force: true });
});

const call = (path: string, options: { method?: string; body?: unknown; headers?: Record<string, string> } = {}) =>
  rawCall(coordinator.url, {
    path,
    method: options.method ?? "GET",
    headers: {
      authorization: `Bearer ${coordinator.adminToken}`,
      "content-type": "application/json",
      ...options.headers,
    },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
  });

test("submits one run per Idempotency-Key, and refuses the key with another body", async () => {
  const submit = (parameters: object) =>
    call("/runs", { method: "POST", headers: { "idempotency-key": "k1" }, body: { agent_name: "filed", parameters } });
  const first = await submit({});
  const repeated = await submit({});
  expect([first.status, repeated.status]).toEqual([201, 200]);
  const run = JSON.parse(first.text);
  expect(JSON.parse(repeated.text).run_id).toBe(run.run_id);
  expect(first.headers["location"]).toBe(`/runs/${run.run_id}`);
  expect(run).toMatchObject({ status: "pending", created_by: "admin", trigger_type: "api", agent_name: "filed" });
  expect((await submit({ other: true })).status).toBeGreaterThanOrEqual(400);
});

test("explains why a run is pending, stops it, and retries it as a new run", async () => {
  const { client } = coordinator;
  const run = await client.submit({ agent_name: "filed", demands: { tags: ["gpu"] }, task_id: "T-1" });
  const { status, why } = await client.runs.why(run.run_id);
  expect(status).toBe("pending");
  expect(why.length).toBeGreaterThan(0);
  await expect(client.runs.retry(run.run_id)).rejects.toMatchObject({ code: "DROVER-API-030" });
  expect((await client.runs.stop(run.run_id)).status).toBe("cancelled");
  const retried = await client.runs.retry(run.run_id);
  expect(retried).toMatchObject({
    retry_of: run.run_id,
    status: "pending",
    task_id: "T-1",
    demands: { tags: ["gpu"] },
  });
  expect(await client.runs.stopMany({ task_id: "T-1" })).toEqual({
    cancelled: [retried.run_id],
    stopping: [],
    untouched: [],
  });
  expect((await client.runs.why(retried.run_id)).why).toEqual([]);
});

test("a retry uses the model of the original request, or else the agent's current one", async () => {
  const { client, store } = coordinator;
  const putAgent = (model: string) => client.agents.put("thinker", { type: "autonomous", executor: "model", model });
  const retryWithModel = async (model?: string) => {
    const run = await client.submit({ agent_name: "thinker", prompt: "go", ...(model ? { model } : {}) });
    await client.runs.stop(run.run_id);
    await putAgent("fixed");
    const retried = await client.runs.retry(run.run_id);
    return {
      returned: retried.model,
      used: (await client.runs.get(retried.run_id)).model,
      snapshot: await store.read.submitted_agent(retried.run_id),
    };
  };
  await putAgent("typo");
  expect(await retryWithModel("requested")).toMatchObject({
    returned: "requested",
    used: "requested",
    snapshot: { agent: { model: "requested" } },
  });
  await putAgent("typo");
  expect(await retryWithModel()).toMatchObject({ returned: null, used: null, snapshot: { agent: { model: "fixed" } } });
});

test("cursors page through a list and return each run once", async () => {
  const { client } = coordinator;
  for (let n = 0; n < 7; n += 1) await client.submit({ agent_name: "filed", task_id: "walk" });
  const seen: string[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await client.runs.list({ task_id: "walk", limit: 3, ...(cursor ? { cursor } : {}) });
    seen.push(...page.items.map((row) => row.run_id));
    if (page.next_cursor === null) break;
    cursor = page.next_cursor;
  }
  expect(seen).toHaveLength(7);
  expect(seen).toEqual([...new Set(seen)].sort().toReversed());
  expect((await client.runs.list({ task_id: "walk", status: ["pending"] })).items).toHaveLength(7);
  expect((await client.runs.list({ task_id: "walk", status: ["failed"] })).items).toEqual([]);
});

test("creates, replaces and removes agents; refuses a file's agent and a bad schema", async () => {
  const { client } = coordinator;
  const put = await client.agents.put("fresh", { command: "echo", description: "one" });
  expect(put).toMatchObject({ name: "fresh", type: "procedural", command: "echo", source: "api", runner_id: null });
  await client.agents.put("fresh", { command: "echo", description: "two" });
  expect((await client.agents.get("fresh")).description).toBe("two");
  const listed = (await client.agents.list()).items;
  expect(listed.map((agent) => [agent.name, agent.source])).toEqual(
    expect.arrayContaining([
      ["filed", "file"],
      ["fresh", "api"],
    ]),
  );
  for (const agent of listed)
    expect(Object.keys(agent)).toEqual(expect.arrayContaining(["type", "command", "runner_id"]));
  const file = join(directory, "agents", "filed.json");
  const validFile = readFileSync(file);
  writeFileSync(file, '{"name": "filed", "comand": "true"}');
  await expect
    .poll(() => client.agents.get("filed"))
    .toMatchObject({ command: "true", fault: expect.stringContaining("unknown key comand") });
  writeFileSync(file, validFile);
  await expect(client.agents.put("filed", { command: "x" })).rejects.toMatchObject({ code: "DROVER-API-020" });
  await expect(client.agents.remove("filed")).rejects.toMatchObject({ code: "DROVER-API-020" });
  await expect(client.agents.put("bad", { command: "x", parameters_schema: { type: "strnig" } })).rejects.toMatchObject(
    { code: "DROVER-AGT-006" },
  );
  // The same refusals as `drover agents check`.
  for (const agent of [{ type: "procedural" }, { type: "autonomous", command: "x" }] as const)
    await expect(client.agents.put("bad", agent)).rejects.toMatchObject({
      code: "DROVER-AGT-004",
      field: "body.command",
    });
  await expect(client.agents.put("bad name", { command: "x" })).rejects.toMatchObject({ field: "path.name" });
  await client.agents.remove("fresh");
  await expect(client.agents.get("fresh")).rejects.toMatchObject({ code: "DROVER-API-014" });
});

test("an agent name on two runners is a 409 with the candidates, and name@runner picks one", async () => {
  const { port, client } = coordinator;
  const agents = [
    {
      name: "twin",
      type: "procedural",
      command: "true",
      description: null,
      parameters_validation: "strict",
      list_style: "comma",
      max_attempts: 1,
      trust_project_settings: false,
    },
  ] as const;
  const ids: string[] = [];
  for (const projectDirectory of ["/srv/a", "/srv/b"])
    ids.push(
      (await port.register({ ...registration(`twin ${projectDirectory}`, projectDirectory), agents: [...agents] }))
        .runner_id,
    );
  await expect(client.agents.get("twin")).rejects.toMatchObject({
    code: "DROVER-API-021",
    next: expect.stringContaining(ids[1]!),
  });
  await expect(client.submit({ agent_name: "twin" })).rejects.toMatchObject({ code: "DROVER-API-021" });
  expect(await client.agents.get(`twin@${ids[1]}`)).toMatchObject({
    name: "twin",
    source: "runner",
    runner_id: ids[1],
  });
  await client.runners.drain(ids[0]!);
  expect(await client.agents.get("twin")).toMatchObject({ name: "twin", runner_id: ids[1] });
});

test("drains a runner and undoes it; an unknown runner is a 404", async () => {
  const { port, client } = coordinator;
  const { runner_id } = await port.register(registration("to drain", "/srv/drain"));
  const status = async () => (await client.runners.list()).items.find((row) => row.runner_id === runner_id)?.status;
  await client.runners.drain(runner_id);
  expect(await status()).toBe("draining");
  await client.runners.drain(runner_id, false);
  expect(await status()).toBe("online");
  await expect(client.runners.drain("nobody")).rejects.toMatchObject({ code: "DROVER-API-014" });
});

test("binds a session once, and only with an id", async () => {
  const { client } = coordinator;
  const run = await client.submit({ agent_name: "filed" });
  const session = await client.sessions.get(run.session_id!);
  expect(session).toMatchObject({ session_id: run.session_id, agent_name: "filed", created_by: "admin" });
  expect((await call(`/sessions/${run.session_id}/bind`, { method: "POST", body: {} })).status).toBe(400);
  const id = session.executor_session_id ?? "executor-session-1";
  expect(await client.sessions.bind(run.session_id!, id)).toMatchObject({ executor_session_id: id });
  await expect(client.sessions.bind(run.session_id!, "executor-session-2")).rejects.toMatchObject({
    code: "DROVER-API-022",
  });
});

test("refuses to resume or fork a procedural agent", async () => {
  const run = await coordinator.client.submit({ agent_name: "filed" });
  for (const mode of ["resume", "fork"]) {
    const { status, text } = await call("/runs", {
      method: "POST",
      body: { agent_name: "filed", mode, session_id: run.session_id },
    });
    expect([status, JSON.parse(text).detail]).toEqual([400, "Procedural agents cannot resume or fork a session."]);
  }
});

test("a backup is a complete database and leaves no temporary files", async () => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of await coordinator.client.backup()) chunks.push(chunk);
  const file = join(directory, "copy.db");
  writeFileSync(file, Buffer.concat(chunks));
  const copy = openDatabase(file, { readOnly: true });
  expect(copy.prepare("pragma integrity_check").get()).toMatchObject({ integrity_check: "ok" });
  expect(Number(copy.prepare("select count(*) as n from runs").get()?.["n"])).toBeGreaterThan(0);
  copy.close();
  await expect.poll(() => readdirSync(coordinator.directory).filter((name) => name.includes("backup-"))).toEqual([]);
});

test("the API reference is one page without scripts, and its policy allows only its own style", async () => {
  const { text, headers } = await call("/docs");
  expect(text).toContain("/runs/{run_id}/events");
  expect(text).not.toMatch(/<script|src=|@import|url\(/i);
  const style = /<style>([^]*?)<\/style>/.exec(text)?.[1] ?? "";
  const hash = createHash("sha256").update(style).digest("base64");
  expect(headers["content-security-policy"]).toContain(`default-src 'none'; style-src 'sha256-${hash}'`);
  const root = await call("/");
  expect([root.status, root.headers["location"]]).toEqual([302, "/ui/"]);
});

test("metrics have the Prometheus text format", async () => {
  await coordinator.client.health();
  const { text } = await call("/metrics");
  for (const line of text.trim().split("\n"))
    expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? -?[\d.e+-]+)$/);
  expect(text).toMatch(/drover_http_requests_total\{method="get",path="\/health",status="200"\} \d+/);
  expect(text).toMatch(/drover_runs\{status="pending"\} \d+/);
});

test("an attempt token submits child runs of its own run, owned by the run's owner", async () => {
  const { client, port } = coordinator;
  const { token } = await client.tokens.create({ role: "user", subject: "kim" });
  const { runner_id, epoch } = await port.register(registration("parents", "/srv/parents"));
  const parent = await createClient({ url: coordinator.url, token }).submit({
    agent_name: "filed",
    demands: { runner_id },
    priority: 10,
  });
  const { claims } = await port.poll(
    { runner_id, epoch, claim_id: "p1", want: 1, ack_order: 0 },
    AbortSignal.timeout(60_000),
  );
  const attemptClient = createClient({ url: coordinator.url, token: claims[0]!.attempt_token });
  expect(claims[0]!.run_id).toBe(parent.run_id);
  expect(await attemptClient.submit({ agent_name: "filed", parent_run_id: "somebody-else" })).toMatchObject({
    parent_run_id: parent.run_id,
    created_by: "kim",
    trigger_type: "agent",
  });
});

test("a caller may set any trigger type except fork", async () => {
  const client = createClient({ url: coordinator.url, token: coordinator.adminToken });
  expect(await client.submit({ agent_name: "filed", trigger_type: "schedule", schedule: "nightly" })).toMatchObject({
    trigger_type: "schedule",
    schedule: "nightly",
  });
  const body = { agent_name: "filed", trigger_type: "fork" };
  expect((await call("/runs", { method: "POST", body })).status).toBe(400);
});

test("responds to HEAD, unknown paths and wrong methods, and lists the allowed methods", async () => {
  expect((await call("/runs", { method: "HEAD" })).status).toBe(200);
  expect((await call("/events", { method: "HEAD", headers: { accept: "text/event-stream" } })).status).toBe(200);
  expect((await call("/nowhere")).status).toBe(404);
  const wrong = await call("/runs", { method: "DELETE" });
  expect([wrong.status, wrong.headers["allow"]]).toEqual([405, "POST, GET"]);
});

test("accepts a runner registration without the fields that have defaults", async () => {
  const body = {
    hostname: "my-host",
    project_dir: "/path/to/project",
    executor_profile: "procedural",
    executor: { type: "procedural", command: "executors/procedural/exec" },
    agents: [{ name: "web-crawler", description: "...", command: "python -m crawler.main" }],
  };
  const register = async () => {
    const response = await rawCall(coordinator.url, {
      method: "POST",
      path: "/runner/register",
      headers: { authorization: `Bearer ${coordinator.adminToken}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(response.status, response.text).toBe(200);
    return JSON.parse(response.text) as { runner_id: string; epoch: number };
  };
  const first = await register();
  const second = await register();
  expect([second.runner_id, second.epoch > first.epoch]).toEqual([first.runner_id, true]);
  const runner = (await coordinator.client.runners.list()).items.find(({ runner_id }) => runner_id === first.runner_id);
  expect(runner).toMatchObject({ tags: [], slots: 1, require_matching_tags: false, agents: ["web-crawler"] });
  expect(await coordinator.client.agents.get("web-crawler")).toMatchObject({ type: "procedural", source: "runner" });
});

test("the OpenAPI document names its schemas, its operations and their refusals", async () => {
  const { text } = await rawCall(coordinator.url, { path: "/openapi.json" });
  const { paths, components, servers } = JSON.parse(text);
  expect(Object.keys(components.schemas)).toEqual(
    expect.arrayContaining(["Run", "Event", "Agent", "Session", "Runner", "Token", "Problem"]),
  );
  expect(servers).toEqual([{ url: "/", description: "This coordinator" }]);
  const operations: Operation[] = Object.values<Record<string, Operation>>(paths).flatMap((item) =>
    Object.values(item),
  );
  const ids = operations.map(({ operationId }) => operationId);
  expect([ids.length, ids]).toEqual([new Set(ids).size, ids.filter((id) => /^[a-z][A-Za-z]+$/.test(id))]);
  const problem = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
  for (const { responses } of operations)
    for (const [status, { content }] of Object.entries(responses))
      if (!(Number(status) < 400)) expect(content).toEqual(problem);
  const run = paths["/runs/{run_id}"].get;
  expect(run.responses[200].content["application/json"].schema).toEqual({ $ref: "#/components/schemas/Run" });
  expect(Object.keys(run.responses)).toEqual(["200", "401", "403", "404", "default"]);
  // Positions in the log have the same type everywhere.
  const position = { type: "integer", minimum: 0 };
  for (const path of ["/runs/{run_id}/events", "/events"])
    expect(paths[path].get.parameters.find(({ name }: { name: string }) => name === "after").schema).toMatchObject(
      position,
    );
  expect(components.schemas.EventPage.properties.next_cursor.anyOf).toEqual([
    expect.objectContaining(position),
    { type: "null" },
  ]);
  // Client generators treat a field with a default as required.
  expect(components.schemas.RunRequest.properties.mode).toMatchObject({ description: 'Default: "start"' });
  expect(components.schemas.RunRequest.properties.mode).not.toHaveProperty("default");
  // Every reference resolves.
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g))
    expect(components.schemas).toHaveProperty([name!]);
  expect(text).not.toContain("$defs");
});
