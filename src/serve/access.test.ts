import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import type { RunEvent } from "../model/event.ts";
import { noCorrelation } from "../model/new-run.ts";
import type { TokenRole } from "../model/token.ts";
import { createClient, type NewToken } from "../wire/client.ts";
import { createHttpPort } from "../wire/http-port.ts";
import { createApp, toRouterPath } from "./app.ts";
import type { ServeDeps } from "./deps.ts";
import { hashToken } from "./token-text.ts";
import { fillPath } from "../wire/transport.ts";
import type { Route } from "./route.ts";
import { routes } from "./routes.ts";

/** Callers without a valid token. */
const rejectedCallers = [
  "none",
  "garbage",
  "unknown",
  "expired",
  "revoked",
  "finished attempt",
  "superseded attempt",
] as const;
/** ann owns every object that the paths name. "viewer of all" has the subject *. */
const callers = [
  "admin",
  "user ann",
  "user bob",
  "viewer ann",
  "viewer bob",
  "viewer of all",
  "runner ann",
  "runner bob",
  "attempt",
  "attempt of another run",
  "enrolment",
] as const;

/**
 * The status that each caller gets, by route. The request body is invalid, so 400 means that the caller was admitted.
 */
const expectedStatuses: Record<string, string> = {
  // admin; users ann, bob; viewers ann, bob, of all; runners ann, bob; attempt of the run, of another run; enrolment
  "POST /runs": "400  400 400  403 403 403  403 403  400 400  403",
  "POST /runs/batch": "400  400 400  403 403 403  403 403  403 403  403",
  "GET /runs": "200  200 200  200 200 200  403 403  403 403  403",
  "POST /runs/stop": "400  400 400  403 403 403  403 403  403 403  403",
  "GET /runs/{run_id}": "200  200 404  200 404 200  403 403  200 404  403",
  "POST /runs/{run_id}/stop": "400  400 404  403 403 403  403 403  400 404  403",
  "POST /runs/{run_id}/retry": "400  400 404  403 403 403  403 403  403 403  403",
  "GET /runs/{run_id}/why": "200  200 404  200 404 200  403 403  200 404  403",
  "GET /runs/{run_id}/events": "200  200 404  200 404 200  403 403  200 404  403",
  "GET /events": "200  200 200  200 200 200  403 403  403 403  403",
  "POST /events/follow": "400  400 400  400 400 400  403 403  403 403  403",
  "GET /runs/{run_id}/files": "200  200 404  200 404 200  403 403  200 404  403",
  "GET /runs/{run_id}/files/{path*}": "200  200 404  200 404 200  403 403  200 404  403",
  "GET /questions": "200  200 200  200 200 200  403 403  403 403  403",
  "POST /runs/{run_id}/permissions/{request_id}": "400  400 404  403 403 403  403 403  403 403  403",
  "POST /runs/{run_id}/resume": "400  400 404  403 403 403  403 403  403 403  403",
  "POST /runs/{run_id}/input": "400  400 404  403 403 403  403 403  403 403  403",
  "GET /usage": "200  200 200  200 200 200  403 403  403 403  403",
  "GET /stats": "200  200 200  200 200 200  403 403  403 403  403",
  "GET /audit": "200  403 403  403 403 403  403 403  403 403  403",
  "POST /audit/verify": "400  403 403  403 403 403  403 403  403 403  403",
  "GET /agents": "200  200 200  200 200 200  403 403  200 200  403",
  "GET /agents/{name}": "200  200 200  200 200 200  403 403  200 200  403",
  "PUT /agents/{name}": "400  403 403  403 403 403  403 403  403 403  403",
  "DELETE /agents/{name}": "400  403 403  403 403 403  403 403  403 403  403",
  "GET /schedules": "200  200 200  200 200 200  403 403  403 403  403",
  "POST /schedules": "400  400 400  403 403 403  403 403  403 403  403",
  "POST /schedules/preview": "400  400 400  400 400 400  403 403  403 403  403",
  "GET /schedules/{schedule_id}": "200  200 404  200 404 200  403 403  403 403  403",
  "PATCH /schedules/{schedule_id}": "400  400 404  403 403 403  403 403  403 403  403",
  "DELETE /schedules/{schedule_id}": "400  400 404  403 403 403  403 403  403 403  403",
  "POST /schedules/{schedule_id}/run": "400  400 404  403 403 403  403 403  403 403  403",
  "GET /schedules/{schedule_id}/history": "200  200 404  200 404 200  403 403  403 403  403",
  "GET /runners": "200  200 200  200 200 200  403 403  403 403  403",
  "POST /runners/{runner_id}/drain": "400  400 404  403 403 403  403 403  403 403  403",
  "POST /runner/enroll": "403  403 403  403 403 403  403 403  403 403  400",
  "POST /runner/register": "400  403 403  403 403 403  400 400  403 403  403",
  "POST /runner/poll": "400  403 403  403 403 403  400 400  403 403  403",
  "POST /runner/report": "400  403 403  403 403 403  400 400  403 403  403",
  "POST /runner/files": "400  403 403  403 403 403  400 400  403 403  403",
  "POST /runner/sessions": "400  403 403  403 403 403  400 400  403 403  403",
  "POST /runner/session/load": "400  403 403  403 403 403  400 400  403 403  403",
  "POST /runner/session/save": "400  403 403  403 403 403  400 400  403 403  403",
  "POST /runner/deregister": "400  403 403  403 403 403  400 400  403 403  403",
  "GET /sessions": "200  200 200  200 200 200  403 403  403 403  403",
  "GET /sessions/{session_id}": "200  200 404  200 404 200  403 403  403 403  403",
  "POST /sessions/{session_id}/bind": "400  400 404  403 403 403  403 403  403 403  403",
  "DELETE /sessions/{session_id}": "400  400 404  403 403 403  403 403  403 403  403",
  "GET /executions": "200  200 200  200 200 200  403 403  403 403  403",
  "GET /executions/{execution_id}": "200  200 404  200 404 200  403 403  403 403  403",
  "GET /tokens": "200  200 200  403 403 403  403 403  403 403  403",
  "POST /tokens": "400  403 403  403 403 403  403 403  403 403  403",
  "POST /tokens/{token_id}/rotate": "400  400 404  403 403 403  403 403  403 403  403",
  "POST /tokens/revoke": "400  400 400  403 403 403  403 403  403 403  403",
  "DELETE /tokens/{token_id}": "400  400 404  403 403 403  403 403  403 403  403",
  "POST /mcp": "400  400 400  400 400 400  403 403  400 400  403",
  "GET /hooks": "200  200 200  200 200 200  403 403  403 403  403",
  "POST /hooks": "400  400 400  403 403 403  403 403  403 403  403",
  "GET /hooks/{name}": "200  200 404  200 404 200  403 403  403 403  403",
  "PATCH /hooks/{name}": "400  400 404  403 403 403  403 403  403 403  403",
  "DELETE /hooks/{name}": "400  400 404  403 403 403  403 403  403 403  403",
  // Authenticated by its signature; tokens are ignored.
  "POST /hooks/{name}": "open 401",
  "GET /webhooks": "200  200 200  200 200 200  403 403  403 403  403",
  "POST /webhooks": "400  400 400  403 403 403  403 403  403 403  403",
  "PATCH /webhooks/{name}": "400  400 404  403 403 403  403 403  403 403  403",
  "DELETE /webhooks/{name}": "400  400 404  403 403 403  403 403  403 403  403",
  "GET /deliveries": "200  200 200  200 200 200  403 403  403 403  403",
  "POST /deliveries/{delivery_id}/redeliver": "400  400 404  403 403 403  403 403  403 403  403",
  "GET /metrics": "200  403 403  403 403 200  403 403  403 403  403",
  "POST /backup": "400  403 403  403 403 403  403 403  403 403  403",
  "GET /me": "200  200 200  200 200 200  403 403  403 403  403",
  "POST /sign-in/links": "400  400 400  400 400 400  403 403  403 403  403",
  "POST /sign-in": "open 400",
  "DELETE /sign-in": "400  400 400  400 400 400  403 403  403 403  403",
  "GET /health": "open 200",
  "POST /proof": "open 400",
  "GET /openapi.json": "open 200",
  "GET /docs": "open 200",
  "GET /": "open 302",
};

let coordinator: TestCoordinator;
/** The token of each caller; null sends none. */
const tokens = new Map<string, string | null>();
const ids: Record<string, string> = { name: "guarded" };

beforeAll(async () => {
  coordinator = await startTestCoordinator({
    leaseMs: 600_000,
    // The delivery that the paths name is never sent.
    deliveries: { resolve: (name, done) => done(new Error(`${name} is not resolved here`), []) },
  });
  const { client, adminToken } = coordinator;
  const createToken = async (name: string, role: TokenRole, subject: string, changes: Partial<NewToken> = {}) => {
    const created = await client.tokens.create({ role, subject, ...changes });
    tokens.set(name, created.token);
    return created;
  };
  tokens.set("none", null);
  tokens.set("garbage", "Gar.bage-");
  tokens.set("unknown", `drv_${"0".repeat(32)}`);
  tokens.set("admin", adminToken);
  const ann = await createToken("user ann", "user", "ann");
  await createToken("user bob", "user", "bob");
  await createToken("viewer ann", "viewer", "ann");
  await createToken("viewer bob", "viewer", "bob");
  await createToken("viewer of all", "viewer", "*");
  const runner = await createToken("runner ann", "runner", "ann");
  await createToken("runner bob", "runner", "bob");
  await createToken("enrolment", "runner", "ann", { enrolment: true });
  await createToken("expired", "admin", "ann", { expires_at: new Date(Date.now() + 6000).toISOString() });
  const revoked = await createToken("revoked", "admin", "ann");
  await client.tokens.revoke(revoked.token_id);
  ids["token_id"] = (await createToken("spare", "user", "ann")).token_id;

  await client.agents.put("guarded", { command: "true" });
  const annClient = createClient({ url: coordinator.url, token: ann.token });
  await annClient.hooks.add({ name: "guarded", agent_name: "guarded" });
  await annClient.webhooks.add({
    name: "guarded",
    url: "https://hooks.example/",
    scope: "named",
    events: ["cancelled"],
  });
  const notified = await annClient.submit({ agent_name: "guarded", webhooks: ["guarded"] });
  await annClient.runs.stop(notified.run_id);
  ids["delivery_id"] = (await annClient.webhooks.deliveries()).items[0]!.delivery_id;
  const port = createHttpPort({ url: coordinator.url, token: runner.token });
  const { runner_id, epoch } = await port.register(registration("access"));
  ids["runner_id"] = runner_id;
  for (let index = 0; index < 5; index += 1) await annClient.submit({ agent_name: "guarded" });
  const claim = async (claim_id: string, want: number) => {
    const poll = { runner_id, epoch, claim_id, want, ack_order: 0 };
    return (await port.poll(poll, AbortSignal.timeout(60_000))).claims;
  };
  const [running, ended, other, lost] = await claim("c1", 4);
  const [newest] = await claim("c2", 1);
  // A run that is not reported as held returns to the queue, except those of the newest claim, which may be in flight.
  const held = [running!, ended!, other!, newest!].map(({ run_id, attempt }): [string, number] => [run_id, attempt]);
  const report = { runner_id, epoch, held, as_of_claim: "c1", partials: [] };
  const bytes = Buffer.from("kept");
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const file = { type: "file", path: "out/kept.txt", size: bytes.length, sha256, media_type: "text/plain" } as const;
  const { run_id, attempt } = running!;
  await port.upload(
    { runner_id, epoch, run_id, attempt, sha256, size: bytes.length },
    Readable.from([bytes]),
    AbortSignal.timeout(60_000),
  );
  ids["path"] = file.path;
  const at = new Date().toISOString();
  const events = [
    {
      run_id,
      attempt,
      events: [
        { n: 1, at, event: startedEvent },
        { n: 2, at, event: file },
      ],
    },
  ];
  const outcome = { status: "completed", exit_code: 0, text: "ok" } as const;
  await port.report({
    ...report,
    events,
    finishes: [{ run_id: ended!.run_id, attempt: ended!.attempt, last_n: 0, outcome }],
  });
  expect(await claim("c3", 1)).toMatchObject([{ run_id: lost!.run_id, attempt: lost!.attempt + 1 }]);
  port.close();
  tokens.set("attempt", running!.attempt_token);
  tokens.set("attempt of another run", other!.attempt_token);
  tokens.set("finished attempt", ended!.attempt_token);
  tokens.set("superseded attempt", lost!.attempt_token);
  ids["run_id"] = running!.run_id;
  ids["request_id"] = "no question";
  ids["execution_id"] = startedEvent.execution.execution_id;
  const schedule = await annClient.schedules.create({
    agent_name: running!.invocation.agent.name,
    name: "of-ann",
    every: "1d",
  });
  ids["schedule_id"] = schedule.schedule_id;
  ids["session_id"] = (await annClient.runs.get(running!.run_id)).session_id ?? "";
  const expired = createClient({ url: coordinator.url, token: tokens.get("expired")! });
  await vi.waitFor(() => expect(expired.runs.list()).rejects.toMatchObject({ code: "DROVER-API-010" }), 120_000);
});
afterAll(async () => {
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
});

const startedEvent: Extract<RunEvent, { type: "execution_started" }> = {
  type: "execution_started",
  execution: {
    execution_id: "0190aaaa-0000-7000-8000-000000000001",
    command: "true",
    argv: ["true"],
    working_directory: "/",
    started_at: "2026-01-01T00:00:00.000Z",
    timeout_ms: null,
    owner: { pid: 1, start: "1", host: "box" },
    correlation: noCorrelation,
  },
};

const cases = routes.flatMap((route) =>
  [...rejectedCallers, ...callers].map((name) => [toRouteName(route), name, route] as const),
);

test.each(cases)("%s with %s returns the status in the table", async (_route, name, route) => {
  const path = fillPath(route.path, (key) => encodeURIComponent(ids[key]!));
  // An invalid body, so that nothing changes.
  const body = route.method === "get" ? {} : { body: '{"unexpected":true}' };
  const token = tokens.get(name);
  const headers = { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const response = await rawCall(coordinator.url, { method: route.method.toUpperCase(), path, headers, ...body });
  expect(response.status, response.text.slice(0, 300)).toBe(expectedStatus(route, name));
});

function expectedStatus(route: Pick<Route, "method" | "path">, name: string): number | undefined {
  const line = expectedStatuses[toRouteName(route)] ?? "";
  if (line.startsWith("open ")) return Number(line.slice(5));
  const column = callers.findIndex((caller) => caller === name);
  return column < 0 ? 401 : Number(line.split(/ +/)[column]);
}

function toRouteName({ method, path }: Pick<Route, "method" | "path">): string {
  return `${method.toUpperCase()} ${path}`;
}

test("the table of expected statuses has a line for every route and a status for every caller", () => {
  expect(Object.keys(expectedStatuses).sort()).toEqual(routes.map(toRouteName).sort());
  for (const [route, line] of Object.entries(expectedStatuses))
    expect([route, line.startsWith("open ") || line.split(/ +/).length === callers.length]).toEqual([route, true]);
  expect([...tokens.keys()].filter((name) => name !== "spare").sort()).toEqual([...rejectedCallers, ...callers].sort());
});

test("every route declares a rule, and no other route is served", () => {
  for (const route of routes)
    expect([route.path, Object.keys(route.rule ?? {}).length > 0]).toEqual([route.path, true]);
  // Before the first request only publicUrls is used.
  const app = createApp({ publicUrls: [] } as unknown as ServeDeps);
  const servedRoutes = app.routes
    .filter((route) => route.path !== "/*")
    .map((route) => `${route.method} ${route.path}`);
  const declaredRoutes = routes.map((route) => `${route.method.toUpperCase()} ${toRouterPath(route)}`);
  // The dashboard's files are public.
  expect(servedRoutes.sort()).toEqual([...declaredRoutes, "GET /ui", "GET /ui/*"].sort());
});

test("lists and the feed hide objects of other users", async () => {
  const bob = createClient({ url: coordinator.url, token: tokens.get("user bob")! });
  const ann = createClient({ url: coordinator.url, token: tokens.get("user ann")! });
  for (const list of [
    (c: typeof bob) => c.runs.list(),
    (c: typeof bob) => c.sessions.list(),
    (c: typeof bob) => c.executions.list(),
    (c: typeof bob) => c.events(),
    (c: typeof bob) => c.hooks.list(),
    (c: typeof bob) => c.webhooks.list(),
    (c: typeof bob) => c.webhooks.deliveries(),
  ]) {
    expect((await list(bob)).items).toEqual([]);
    expect((await list(ann)).items.length).toBeGreaterThan(0);
  }
  await expect(bob.runs.stopMany({ all: true })).resolves.toEqual({ cancelled: [], stopping: [], untouched: [] });
  await expect(bob.submit({ agent_name: "guarded", parent_run_id: ids["run_id"]! })).rejects.toMatchObject({
    code: "DROVER-API-014",
  });
});

test("lists runners and tokens to their owner, and all of them to an admin", async () => {
  const createClientFor = (name: string) => createClient({ url: coordinator.url, token: tokens.get(name)! });
  const [ann, bob] = [createClientFor("user ann"), createClientFor("user bob")];
  const runner = expect.objectContaining({ runner_id: ids["runner_id"] });
  expect((await ann.runners.list()).items).toContainEqual(runner);
  expect((await bob.runners.list()).items).not.toContainEqual(runner);
  expect((await createClientFor("viewer of all").runners.list()).items).toContainEqual(runner);

  const subjects = async (client: typeof ann) =>
    [...new Set((await client.tokens.list()).items.map(({ subject, role }) => `${role} ${subject}`))].sort();
  expect(await subjects(ann)).toEqual(["user ann", "viewer ann"]);
  expect(await subjects(bob)).toEqual(["user bob", "viewer bob"]);
  expect(await subjects(coordinator.client)).toEqual(expect.arrayContaining(["admin ann", "runner bob", "user bob"]));
});

test("a user cannot see, change or remove an admin's webhook of the same subject, or redeliver its deliveries", async () => {
  const admin = await coordinator.client.tokens.create({ role: "admin", subject: "zoe" });
  const user = await coordinator.client.tokens.create({ role: "user", subject: "zoe" });
  const [admins, users] = [admin, user].map(({ token }) => createClient({ url: coordinator.url, token }));
  await admins!.webhooks.add({
    name: "everyones",
    url: "https://hooks.example/",
    scope: "named",
    events: ["cancelled"],
  });
  const { run_id } = await admins!.submit({ agent_name: "guarded", webhooks: ["everyones"] });
  await admins!.runs.stop(run_id);
  const [delivery] = (await admins!.webhooks.deliveries({ webhook: "everyones" })).items;
  const unknown = { code: "DROVER-API-014" };
  await expect(users!.webhooks.change("everyones", { scope: "all" })).rejects.toMatchObject(unknown);
  await expect(users!.webhooks.remove("everyones")).rejects.toMatchObject(unknown);
  await expect(users!.webhooks.redeliver(delivery!.delivery_id)).rejects.toMatchObject(unknown);
  expect((await users!.webhooks.list()).items).toEqual([]);
  expect((await users!.webhooks.deliveries()).items).toEqual([]);
  await users!.webhooks.add({ name: "zoes-own", url: "https://hooks.example/" });
  expect(await users!.webhooks.change("zoes-own", { enabled: false })).toMatchObject({ everyones: false });
  expect(await admins!.webhooks.change("everyones", { enabled: false })).toMatchObject({ everyones: true });
  await admins!.webhooks.remove("everyones");
});

test("a user cannot rotate or revoke a more powerful token of the same subject", async () => {
  const ann = createClient({ url: coordinator.url, token: tokens.get("user ann")! });
  for (const role of ["admin", "runner"] as const) {
    const { token_id, token } = await coordinator.client.tokens.create({ role, subject: "ann" });
    const missing = { code: "DROVER-API-014" };
    await expect(ann.tokens.rotate(token_id)).rejects.toMatchObject(missing);
    await expect(ann.tokens.revoke(token_id)).rejects.toMatchObject(missing);
    const accepted = createClient({ url: coordinator.url, token });
    // The token still works, but a runner may not list runs.
    const code = await accepted.runs.list().then(
      () => null,
      (error) => error.code,
    );
    expect(code).toBe(role === "admin" ? null : "DROVER-API-011");
    await coordinator.client.tokens.revoke(token_id);
  }
});

test("refuses polls, reports and removal for another owner's runner, and writes to its runs", async () => {
  const bob = createHttpPort({ url: coordinator.url, token: tokens.get("runner bob")! });
  const runner_id = ids["runner_id"]!;
  const signal = AbortSignal.timeout(60_000);
  const report = { runner_id, epoch: 1, held: [], as_of_claim: null, events: [], partials: [], finishes: [] };
  await expect(bob.poll({ runner_id, epoch: 1, claim_id: "x", want: 1, ack_order: 0 }, signal)).rejects.toMatchObject({
    conflict: "unknown_runner",
  });
  await expect(bob.report(report)).rejects.toMatchObject({ conflict: "unknown_runner" });
  await bob.deregister({ runner_id, epoch: 1 });
  expect((await coordinator.client.runners.list()).items).toContainEqual(
    expect.objectContaining({ runner_id, status: "online" }),
  );
  await expect(bob.register(registration("another key"))).rejects.toMatchObject({ conflict: "duplicate_runner" });
  const own = await bob.register(registration("bob's own key", "/srv/bob"));
  const run_id = ids["run_id"]!;
  const outcome = { status: "completed", exit_code: 0, text: "hijacked" } as const;
  const response = await bob.report({
    ...report,
    runner_id: own.runner_id,
    epoch: own.epoch,
    finishes: [{ run_id, attempt: 1, last_n: 0, outcome }],
  });
  expect(response.fenced).toContainEqual({ run_id, attempt: 1 });
  expect((await coordinator.client.runs.get(run_id)).status).not.toBe("completed");
  bob.close();
});

test("an enrolment token works once and yields a runner token with the same subject", async () => {
  const { token } = await coordinator.client.tokens.create({ role: "runner", subject: "fleet", enrolment: true });
  const enrol = () => createClient({ url: coordinator.url, token }).runners.enroll();
  const [first, second] = await Promise.allSettled([enrol(), enrol()]);
  const outcomes = [first, second].map((item) => item.status).sort();
  expect(outcomes).toEqual(["fulfilled", "rejected"]);
  await expect(enrol()).rejects.toMatchObject({ code: "DROVER-API-019" });
  const created = first.status === "fulfilled" ? first.value : second.status === "fulfilled" ? second.value : null;
  const port = createHttpPort({ url: coordinator.url, token: created!.token });
  const { runner_id } = await port.register(registration("fleet key", "/srv/fleet"));
  expect((await coordinator.client.runners.list()).items.find((item) => item.runner_id === runner_id)?.owner).toBe(
    "fleet",
  );
  port.close();
});

test("refuses a revoked token at once, and a forged one always", async () => {
  const created = await coordinator.client.tokens.create({ role: "user", subject: "eve" });
  const eve = createClient({ url: coordinator.url, token: created.token });
  await eve.runs.list();
  await coordinator.client.tokens.revoke(created.token_id);
  await expect(eve.runs.list()).rejects.toMatchObject({ code: "DROVER-API-010" });
  // The store holds the hash, which must not work as a token.
  const forged = tokens.get("attempt")!.replace(/\.\d+\./, ".2.");
  for (const token of [hashToken(created.token), forged]) {
    const response = await fetch(`${coordinator.url}/runs`, { headers: { authorization: `Bearer ${token}` } });
    expect(await response.json()).toMatchObject({ status: 401, code: "DROVER-API-009" });
    // The client does not even send it.
    await expect(createClient({ url: coordinator.url, token }).runs.list()).rejects.toMatchObject({
      code: "DROVER-API-034",
    });
  }
});
