import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import type { RunEvent } from "../model/event.ts";
import type { TokenRole } from "../model/token.ts";
import { createClient } from "../wire/client.ts";
import { createHttpPort } from "../wire/http-port.ts";
import { createApp, servedPath } from "./app.ts";
import type { ServeDeps } from "./deps.ts";
import { hashToken } from "./token-text.ts";
import { type Route, withParameters } from "./route.ts";
import { routes } from "./routes.ts";

/** Each principal, and what the rules have to know of it. `sees`: whether it may see what belongs to ann. */
interface Asker {
  token: string | null;
  role: TokenRole | "attempt" | "enrolment" | "nobody";
  sees: boolean;
}

let coordinator: TestCoordinator;
const askers = new Map<string, Asker>();
const ids: Record<string, string> = { name: "guarded" };
const names = [
  "none",
  "unknown",
  "admin",
  "user ann",
  "user bob",
  "viewer ann",
  "viewer bob",
  "viewer of all",
  "runner ann",
  "runner bob",
  "enrolment",
  "expired",
  "revoked",
  "attempt",
  "finished attempt",
];

beforeAll(async () => {
  coordinator = await startTestCoordinator({ leaseMs: 600_000 });
  const { client, adminToken } = coordinator;
  const make = async (
    name: string,
    role: TokenRole,
    subject: string,
    more: { expires_at?: string; enrolment?: boolean } = {},
  ) => {
    const made = await client.tokens.create({ role, subject, ...more });
    askers.set(name, {
      token: made.token,
      role: more.enrolment ? "enrolment" : role,
      sees: subject === "ann" || subject === "*",
    });
    return made;
  };
  askers.set("none", { token: null, role: "nobody", sees: false });
  askers.set("unknown", { token: `drv_${"0".repeat(32)}`, role: "nobody", sees: false });
  askers.set("admin", { token: adminToken, role: "admin", sees: true });
  const ann = await make("user ann", "user", "ann");
  await make("user bob", "user", "bob");
  await make("viewer ann", "viewer", "ann");
  await make("viewer bob", "viewer", "bob");
  await make("viewer of all", "viewer", "*");
  const runner = await make("runner ann", "runner", "ann");
  await make("runner bob", "runner", "bob");
  await make("enrolment", "runner", "ann", { enrolment: true });
  await make("expired", "user", "ann", { expires_at: "2001-01-01T00:00:00Z" });
  const revoked = await make("revoked", "admin", "ann");
  await client.tokens.revoke(revoked.token_id);
  for (const name of ["expired", "revoked"]) askers.get(name)!.role = "nobody";
  ids["token_id"] = revoked.token_id;

  await client.agents.put("guarded", { command: "true" });
  const annClient = createClient({ url: coordinator.url, token: ann.token });
  const port = createHttpPort({ url: coordinator.url, token: runner.token });
  const { runner_id, epoch } = await port.register(registration("who-may"));
  ids["runner_id"] = runner_id;
  const submitted = [
    await annClient.submit({ agent_name: "guarded" }),
    await annClient.submit({ agent_name: "guarded" }),
  ];
  const { claims } = await port.poll(
    { runner_id, epoch, claim_id: "c1", want: 2, ack_order: 0 },
    AbortSignal.timeout(10_000),
  );
  expect(claims.map((claim) => claim.run_id).sort()).toEqual(submitted.map((run) => run.run_id).sort());
  const [going, ended] = claims;
  const held = claims.map(({ run_id, attempt }): [string, number] => [run_id, attempt]);
  const empty = { runner_id, epoch, held, as_of_claim: "c1", partials: [] };
  const bytes = Buffer.from("kept");
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const file = { type: "file", path: "out/kept.txt", size: bytes.length, sha256, media_type: "text/plain" } as const;
  const { run_id, attempt } = going!;
  await port.upload(
    { runner_id, epoch, run_id, attempt, sha256, size: bytes.length },
    Readable.from([bytes]),
    AbortSignal.timeout(10_000),
  );
  ids["path"] = file.path;
  const at = new Date().toISOString();
  const events = [
    {
      run_id,
      attempt,
      events: [
        { n: 1, at, event: started },
        { n: 2, at, event: file },
      ],
    },
  ];
  const outcome = { status: "completed", exit_code: 0, text: "ok" } as const;
  await port.report({
    ...empty,
    events,
    finishes: [{ run_id: ended!.run_id, attempt: ended!.attempt, last_n: 0, outcome }],
  });
  port.close();
  askers.set("attempt", { token: going!.attempt_token, role: "attempt", sees: true });
  askers.set("finished attempt", { token: ended!.attempt_token, role: "nobody", sees: false });
  ids["run_id"] = going!.run_id;
  ids["execution_id"] = started.execution.execution_id;
  ids["session_id"] = (await annClient.runs.get(going!.run_id)).session_id ?? "";
});
afterAll(async () => {
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
});

const started: Extract<RunEvent, { type: "execution_started" }> = {
  type: "execution_started",
  execution: {
    execution_id: "0190aaaa-0000-7000-8000-000000000001",
    command: "true",
    argv: ["true"],
    working_directory: "/",
    started_at: "2026-01-01T00:00:00.000Z",
    timeout_ms: null,
    owner: { pid: 1, start: "1", host: "box" },
    correlation: {
      session_id: null,
      task_id: null,
      step_id: null,
      tool_call_id: null,
      worktree_id: null,
      repo_sha: null,
    },
  },
};

const cases = routes.flatMap((row) =>
  names.map((name) => [`${row.method.toUpperCase()} ${row.path}`, name, row] as const),
);

test.each(cases)("%s with %s is as declared", async (_route, name, row) => {
  const asker = askers.get(name)!;
  const path = withParameters(row.path, (key) => encodeURIComponent(ids[key]!));
  // a body that no route takes: who is let in is told so, and nothing is changed
  const body = row.method === "get" ? {} : { body: '{"unexpected":true}' };
  const headers = {
    "content-type": "application/json",
    ...(asker.token ? { authorization: `Bearer ${asker.token}` } : {}),
  };
  const { status } = await rawCall(coordinator.url, { method: row.method.toUpperCase(), path, headers, ...body });
  const expected = declared(row, asker);
  if (expected === "in") expect([401, 403]).not.toContain(status);
  else expect(status).toBe(expected);
  if (expected === "in" && row.method === "get" && row.path !== "/") expect(status).toBe(200);
});

function declared({ rule }: Route, asker: Asker): 401 | 403 | 404 | "in" {
  if ("open" in rule) return "in";
  if (asker.role === "nobody") return 401;
  if ("enrolment" in rule) return asker.role === "enrolment" ? "in" : 403;
  if (asker.role === "enrolment") return 403;
  const allowed = asker.role === "attempt" ? rule.attempt === true : rule.roles.includes(asker.role);
  if (!allowed) return 403;
  return rule.object === undefined || asker.sees ? "in" : 404;
}

test("every route declares a rule, and nothing is served that is not in the table", () => {
  for (const row of routes) expect([row.path, Object.keys(row.rule ?? {}).length > 0]).toEqual([row.path, true]);
  // only the guard's settings are looked at before a request comes
  const app = createApp({ publicUrls: [] } as unknown as ServeDeps);
  const served = app.routes.filter((one) => one.path !== "/*").map((one) => `${one.method} ${one.path}`);
  expect(served.sort()).toEqual(routes.map((row) => `${row.method.toUpperCase()} ${servedPath(row)}`).sort());
});

test("lists and the feed show a user nothing of another's", async () => {
  const bob = createClient({ url: coordinator.url, token: askers.get("user bob")!.token });
  const ann = createClient({ url: coordinator.url, token: askers.get("user ann")!.token });
  for (const list of [
    (c: typeof bob) => c.runs.list(),
    (c: typeof bob) => c.sessions.list(),
    (c: typeof bob) => c.executions.list(),
    (c: typeof bob) => c.events(),
  ]) {
    expect((await list(bob)).items).toEqual([]);
    expect((await list(ann)).items.length).toBeGreaterThan(0);
  }
  await expect(bob.runs.stopMany({ all: true })).resolves.toEqual({ cancelled: [], stopping: [], untouched: [] });
  await expect(bob.submit({ agent_name: "guarded", parent_run_id: ids["run_id"]! })).rejects.toMatchObject({
    code: "DROVER-API-014",
  });
});

test("another owner's runner can be neither polled, reported for nor removed, and its runs not written to", async () => {
  const bob = createHttpPort({ url: coordinator.url, token: askers.get("runner bob")!.token! });
  const runner_id = ids["runner_id"]!;
  const signal = AbortSignal.timeout(10_000);
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
  const answer = await bob.report({
    ...report,
    runner_id: own.runner_id,
    epoch: own.epoch,
    finishes: [{ run_id, attempt: 1, last_n: 0, outcome }],
  });
  expect(answer.fenced).toContainEqual({ run_id, attempt: 1 });
  expect((await coordinator.client.runs.get(run_id)).status).not.toBe("completed");
  bob.close();
});

test("an enrolment token works once, and gives a runner's token of the same subject", async () => {
  const { token } = await coordinator.client.tokens.create({ role: "runner", subject: "fleet", enrolment: true });
  const enrol = () => createClient({ url: coordinator.url, token }).runners.enroll();
  const [first, second] = await Promise.allSettled([enrol(), enrol()]);
  const outcomes = [first, second].map((one) => one.status).sort();
  expect(outcomes).toEqual(["fulfilled", "rejected"]);
  await expect(enrol()).rejects.toMatchObject({ code: "DROVER-API-019" });
  const made = first.status === "fulfilled" ? first.value : second.status === "fulfilled" ? second.value : null;
  const port = createHttpPort({ url: coordinator.url, token: made!.token });
  const { runner_id } = await port.register(registration("fleet key", "/srv/fleet"));
  expect((await coordinator.client.runners.list()).items.find((one) => one.runner_id === runner_id)?.owner).toBe(
    "fleet",
  );
  port.close();
});

test("a token ends at the moment it is revoked, and one that is guessed is as good as none", async () => {
  const made = await coordinator.client.tokens.create({ role: "user", subject: "eve" });
  const eve = createClient({ url: coordinator.url, token: made.token });
  await eve.runs.list();
  await coordinator.client.tokens.revoke(made.token_id);
  await expect(eve.runs.list()).rejects.toMatchObject({ code: "DROVER-API-010" });
  // the hash is what is stored: it must not itself be a token
  await expect(createClient({ url: coordinator.url, token: hashToken(made.token) }).runs.list()).rejects.toMatchObject({
    code: "DROVER-API-009",
  });
  const forged = askers.get("attempt")!.token!.replace(/\.\d+\./, ".2.");
  await expect(createClient({ url: coordinator.url, token: forged }).runs.get(ids["run_id"]!)).rejects.toMatchObject({
    code: "DROVER-API-009",
  });
});
