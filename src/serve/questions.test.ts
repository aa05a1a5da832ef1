import { afterEach, expect, test } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import type { RunEvent } from "../model/event.ts";
import type { Claim } from "../model/runner-port.ts";
import { type ApiClient, createClient } from "../wire/client.ts";
import { createHttpPort } from "../wire/http-port.ts";

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

const input_schema = { type: "object", properties: { command: { type: "string" } }, required: ["command"] };
const request = {
  type: "permission_request",
  request_id: "toolu/1",
  tool: "shell",
  input: { command: "ls" },
  input_schema,
} as const;
const { request_id } = request;

/** Starts a coordinator with a manually driven runner and two users. */
async function setUp(can?: { input: boolean }) {
  const coordinator = await startTestCoordinator({ leaseMs: 600_000 });
  cleanups.push(() => coordinator.dispose());
  await coordinator.client.agents.put("chat", { type: "autonomous", executor: "procedural", attended: true });
  const port = createHttpPort({ url: coordinator.url, token: coordinator.adminToken });
  cleanups.push(() => port.close());
  const { runner_id, epoch } = await port.register({
    ...registration("asker"),
    executor: { type: "procedural", config: {}, ...(can ? { can } : {}) },
  });
  let claims = 0;
  const poll = (want: number) =>
    port.poll({ runner_id, epoch, claim_id: `c${(claims += 1)}`, want, ack_order: 0 }, AbortSignal.timeout(60_000));
  const report = async ({ run_id, attempt }: Claim, first: number, ...events: RunEvent[]) => {
    const at = new Date().toISOString();
    const numbered = events.map((event, index) => ({ n: first + index, at, event }));
    const held: [string, number][] = [[run_id, attempt]];
    const rest = { as_of_claim: null, partials: [], finishes: [] };
    await port.report({ runner_id, epoch, held, events: [{ run_id, attempt, events: numbered }], ...rest });
  };
  const finish = async ({ run_id, attempt }: Claim, last_n: number, why: "approval" | "budget") => {
    const outcome = { status: "parked", why } as const;
    const rest = { held: [], as_of_claim: null, events: [], partials: [] };
    await port.report({ runner_id, epoch, ...rest, finishes: [{ run_id, attempt, last_n, outcome }] });
  };
  const createUser = async (subject: string): Promise<ApiClient> => {
    const { token } = await coordinator.client.tokens.create({ role: "user", subject });
    return createClient({ url: coordinator.url, token });
  };
  const ann = await createUser("ann");
  /** Creates a run of ann that waits for an answer. */
  const askQuestion = async (): Promise<Claim> => {
    const { run_id, attended } = await ann.submit({ agent_name: "chat", prompt: "go" });
    expect(attended).toBe(true);
    const { claims: claimed } = await poll(1);
    expect(claimed.map((claim) => claim.run_id)).toEqual([run_id]);
    await report(claimed[0]!, 1, request);
    return claimed[0]!;
  };
  return { coordinator, ann, bob: await createUser("bob"), poll, report, finish, askQuestion };
}

test("lists open questions to those who may answer, and delivers the answer to the runner", async () => {
  const { coordinator, ann, bob, poll, askQuestion } = await setUp();
  const { run_id } = await askQuestion();
  expect(await ann.questions.list()).toMatchObject({
    count: 1,
    next_cursor: null,
    items: [{ run_id, request_id, tool: "shell", input: { command: "ls" }, created_by: "ann", decision: null }],
  });
  expect(await coordinator.client.questions.list()).toMatchObject({ count: 1 });
  expect(await bob.questions.list()).toMatchObject({ count: 0, items: [] });
  expect((await ann.runs.why(run_id)).why).toMatchObject([{ demand: "approval" }]);
  const answer = { decision: "allow", input: { command: "pwd" } } as const;
  expect(await ann.questions.answer(run_id, request_id, answer)).toMatchObject({
    decision: "allow",
    answered_by: "ann",
    edited_input: { command: "pwd" },
  });
  expect((await poll(0)).orders).toMatchObject([{ run_id, answer: { request_id, answer } }]);
  expect(await ann.questions.list()).toMatchObject({ count: 0 });
  expect(await ann.questions.list({ open: false, run_id })).toMatchObject({ count: 1 });
});

test("accepts one of two simultaneous answers, and tells the other who answered", async () => {
  const { coordinator, ann, askQuestion } = await setUp();
  const { run_id } = await askQuestion();
  const settled = await Promise.allSettled([
    ann.questions.answer(run_id, request_id, { decision: "allow" }),
    coordinator.client.questions.answer(run_id, request_id, { decision: "deny", message: "no" }),
  ]);
  const refused = settled.flatMap((item) => (item.status === "rejected" ? [item.reason] : []));
  expect(refused).toHaveLength(1);
  const [question] = (await ann.questions.list({ open: false })).items;
  expect(refused[0]).toMatchObject({
    code: "DROVER-API-031",
    message: expect.stringContaining(`${question!.answered_by} already answered with ${question!.decision}`),
  });
});

test("refuses an answer to an unknown or closed question, to another user's, or with invalid input", async () => {
  const { ann, bob, report, askQuestion, coordinator } = await setUp();
  const claim = await askQuestion();
  const { run_id } = claim;
  const answer = (client: ApiClient, body: Parameters<ApiClient["questions"]["answer"]>[2], id: string = request_id) =>
    client.questions.answer(run_id, id, body);
  await expect(answer(ann, { decision: "allow" }, "unknown")).rejects.toMatchObject({ code: "DROVER-API-014" });
  await expect(answer(bob, { decision: "allow" })).rejects.toMatchObject({ code: "DROVER-API-014" });
  await expect(answer(ann, { decision: "allow", input: { command: 7 } })).rejects.toMatchObject({
    code: "DROVER-PAR-001",
    field: "body.input.command",
  });
  await expect(answer(ann, { decision: "deny", input: {} })).rejects.toMatchObject({ code: "DROVER-API-006" });
  const attemptClient = createClient({ url: coordinator.url, token: claim.attempt_token });
  await expect(answer(attemptClient, { decision: "allow" })).rejects.toMatchObject({ code: "DROVER-API-011" });
  expect(await ann.questions.list()).toMatchObject({ count: 1 });
  await report(claim, 2, { type: "permission_decision", request_id, decision: "superseded", by: "drover" });
  await expect(answer(ann, { decision: "allow" })).rejects.toMatchObject({ code: "DROVER-API-032" });
});

test("refuses an answer to a question that expired, and says that its run has failed", async () => {
  const { coordinator, ann, askQuestion } = await setUp();
  const expiring = {
    type: "autonomous",
    executor: "procedural",
    attended: true,
    answer_within_seconds: 0.001,
  } as const;
  await coordinator.client.agents.put("chat", expiring);
  const { run_id } = await askQuestion();
  await expect
    .poll(async () => (await ann.questions.list({ open: false })).items)
    .toMatchObject([{ decision: "expired" }]);
  await expect(ann.questions.answer(run_id, request_id, { decision: "allow" })).rejects.toMatchObject({
    code: "DROVER-API-032",
    message: expect.stringMatching(/^The question expired at .*, and its run has failed\.$/),
  });
  expect(await ann.questions.list()).toMatchObject({ count: 0 });
});

test("a parked run continues with an answer given after a coordinator restart", async () => {
  const { coordinator, finish, askQuestion } = await setUp();
  const claim = await askQuestion();
  await finish(claim, 1, "approval");
  const { run_id } = claim;
  await expect(coordinator.client.runs.resume(run_id)).rejects.toMatchObject({ code: "DROVER-API-030" });
  await coordinator.stop();
  const restarted: TestCoordinator = await startTestCoordinator({ stateDirectory: coordinator.directory });
  cleanups.push(() => restarted.stop());
  const client = createClient({ url: restarted.url, token: coordinator.adminToken });
  expect(await client.runs.get(run_id)).toMatchObject({ status: "parked", parked_why: "approval" });
  await client.questions.answer(run_id, request_id, { decision: "allow", remember: "session" });
  const port = createHttpPort({ url: restarted.url, token: coordinator.adminToken });
  cleanups.push(() => port.close());
  const { runner_id, epoch } = await port.register(registration("asker"));
  const poll = { runner_id, epoch, claim_id: "later", want: 0, ack_order: 0 };
  const { claims } = await port.poll(poll, AbortSignal.timeout(60_000));
  expect(claims).toMatchObject([{ run_id, attempt: 2, invocation: { continues: true, granted_tools: ["shell"] } }]);
  expect(claims[0]?.invocation.answers).toMatchObject([{ request_id, tool: "shell", answer: { decision: "allow" } }]);
});

test("resumes a parked run that waits for no answer, and sends input to a running one", async () => {
  const { ann, poll, finish } = await setUp();
  const { run_id } = await ann.submit({ agent_name: "chat", prompt: "go", attended: false });
  await expect(ann.runs.input(run_id, "hi")).rejects.toMatchObject({ code: "DROVER-API-030" });
  await expect(ann.runs.resume(run_id)).rejects.toMatchObject({ code: "DROVER-API-030" });
  const { claims } = await poll(1);
  await ann.runs.input(run_id, "x".repeat(1_000_000));
  await expect(ann.runs.input(run_id, "x".repeat(1_000_001))).rejects.toMatchObject({ code: "DROVER-API-006" });
  expect((await poll(0)).orders).toMatchObject([{ run_id, input: { text: "x".repeat(1_000_000) } }]);
  await finish(claims[0]!, 0, "budget");
  expect((await ann.runs.why(run_id)).why).toMatchObject([{ demand: "budget" }]);
  expect(await ann.runs.resume(run_id)).toMatchObject({ status: "pending" });
  expect((await poll(0)).claims).toMatchObject([{ run_id, attempt: 2 }]);
});

test("shows usage to the owner of the runs", async () => {
  const { coordinator, ann, bob, askQuestion, report } = await setUp();
  const claim = await askQuestion();
  const usage = { input_tokens: 7, output_tokens: 3, cost_usd: 0.5 };
  await report(claim, 2, { type: "usage", usage });
  const annsUsage = { items: [{ agent_name: "chat", runs: 1, turns: 1, ...usage }] };
  expect(await ann.usage()).toMatchObject(annsUsage);
  expect(await coordinator.client.usage({ by: "agent", agent_name: "chat" })).toMatchObject(annsUsage);
  expect(await bob.usage({ by: "day" })).toEqual({ items: [] });
  expect(await ann.usage({ by: "session" })).toMatchObject({ items: [{ session_id: expect.any(String) }] });
  await expect(ann.usage({ since: "yesterday" })).rejects.toMatchObject({ code: "DROVER-API-006" });
});

test("refuses a message to a run whose executor cannot read it, with a next step", async () => {
  const { coordinator, ann, poll } = await setUp({ input: false });
  const { run_id } = await ann.submit({ agent_name: "chat", prompt: "go" });
  await poll(1);
  await expect(ann.runs.input(run_id, "faster")).rejects.toMatchObject({
    code: "DROVER-API-033",
    message: "The executor procedural cannot read messages while it works.",
    next: expect.stringContaining("mode resume"),
  });
  const { items } = await ann.runs.events(run_id);
  expect(JSON.stringify(items)).not.toContain("user_input");
  expect((await coordinator.client.runners.list()).items).toMatchObject([{ executor: { can: { input: false } } }]);
});
