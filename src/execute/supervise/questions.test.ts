import { expect, test } from "vitest";
import { createMemoryCoordinator, type MemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import type { FixtureOptions } from "../../../test/fixtures/execute/open-runner.ts";
import { waitForOutcome, poll, prepareRunners } from "../../../test/fixtures/execute/registered.ts";
import type { Agent } from "../../model/agent.ts";
import type { Answer, Executor, Invocation, Outcome, RunContext } from "../../model/executor.ts";

const { setUp } = prepareRunners();

type Work = (context: RunContext, invocation: Invocation) => Promise<unknown>;

/** Runs `work`. The value it returns becomes the text of the run, unless it is an outcome itself. */
function createExecutor(work: Work, can: Partial<Executor["can"]> = {}): Executor {
  return {
    name: "asking",
    can: { resume: false, fork: false, ask: true, input: false, ...can },
    async run(invocation, context) {
      const value = await work(context, invocation);
      if (typeof value === "object" && value !== null && "status" in value) return value as Outcome;
      return { status: "completed", exit_code: null, text: JSON.stringify(value) };
    },
  };
}

const parkCapabilities = { state: true, park: true };
const save = (context: RunContext): Promise<void> => context.session.save("test-1", Buffer.from("{}"));
const ask = (context: RunContext, request_id = "q1", tool = "shell"): Promise<Answer> =>
  context.ask({ request_id, tool, input: { a: 1 }, effect: "execute" });

/** Asks once, and parks if the answer is `park`. */
const createAskingExecutor: Work = async (context) => {
  await save(context);
  const answer = await ask(context);
  return answer.decision === "park" ? { status: "parked", why: "approval" } : answer;
};

async function start(work: Work, can: Partial<Executor["can"]> = {}, overrides: Partial<FixtureOptions> = {}) {
  const coordinator = createMemoryCoordinator();
  const fixture = await setUp(coordinator, { executor: createExecutor(work, can), ...overrides });
  const runner = await fixture.open();
  const submit = (agent: Partial<Agent> = {}, invocation: Partial<Invocation> = {}): string =>
    coordinator.submit({ type: "autonomous", ...agent }, { attended: true, ...invocation });
  return { ...fixture, coordinator, runner, submit };
}

const expectStatus = (coordinator: MemoryCoordinator, run_id: string, status: string) =>
  poll(() => coordinator.runs.get(run_id)!.status).toBe(status);
const readAnswer = async (coordinator: MemoryCoordinator, run_id: string): Promise<unknown> => {
  const outcome = await waitForOutcome(coordinator, run_id);
  if (outcome.status !== "completed") throw new Error(JSON.stringify(outcome));
  return JSON.parse(outcome.text!);
};
const questionEvents = (coordinator: MemoryCoordinator, run_id: string) =>
  coordinator.events(run_id).filter(({ type }) => /^(?:permission|status)/.test(type));

test("fails a question of an executor that does not declare it", async () => {
  const { coordinator, submit } = await start((context) => ask(context), { ask: false });
  const id = submit();
  expect(await waitForOutcome(coordinator, id)).toMatchObject({ status: "failed" });
  expect(coordinator.events(id)).toContainEqual({
    type: "error",
    code: "undeclared_ask",
    message: "The executor asking asks a question but does not declare can: { ask: true }.",
  });
  expect(coordinator.events(id).map(({ type }) => type)).not.toContain("permission_request");
});

test("denies a question of an unattended run at once, with a message that explains how to attend it", async () => {
  const { coordinator, submit } = await start((context) => ask(context));
  const id = submit({}, { attended: false, granted_tools: ["shell"] });
  expect(await readAnswer(coordinator, id)).toEqual({
    decision: "deny",
    message: expect.stringMatching(/unattended.*`attended: true`.*terminal/),
  });
  expect(questionEvents(coordinator, id)).toEqual([
    { type: "status", status: "running" },
    { type: "permission_request", request_id: "q1", tool: "shell", input: { a: 1 }, effect: "execute" },
    expect.objectContaining({ type: "permission_decision", request_id: "q1", decision: "deny", by: "unattended" }),
  ]);
});

test.each([
  { decision: "allow", input: { a: 2 } },
  { decision: "deny", message: "not today" },
  { decision: "stop" },
] as const)("an attended run waits for and gets the answer $decision", async (answer) => {
  const { coordinator, submit } = await start((context) => ask(context));
  const id = submit();
  await expectStatus(coordinator, id, "waiting");
  coordinator.answer(id, "q1", answer);
  expect(await readAnswer(coordinator, id)).toEqual(answer);
  expect(questionEvents(coordinator, id)).toEqual([
    { type: "status", status: "running" },
    { type: "permission_request", request_id: "q1", tool: "shell", input: { a: 1 }, effect: "execute" },
    { type: "status", status: "waiting", reason: "shell" },
    { type: "status", status: "running" },
  ]);
});

test("a waiting run frees its slot and pauses its time limit and idle timeout", async () => {
  const { coordinator, submit } = await start(
    (context, { prompt }) => (prompt === "other" ? Promise.resolve(1) : ask(context)),
    {},
    { slots: 1 },
  );
  const id = submit({ timeout_seconds: 3, idle_timeout_seconds: 3 });
  await expectStatus(coordinator, id, "waiting");
  // Other runs use the one slot in turn, in total for longer than the limits.
  const until = performance.now() + 3500;
  while (performance.now() < until) expect(await readAnswer(coordinator, submit({}, { prompt: "other" }))).toBe(1);
  coordinator.answer(id, "q1", { decision: "allow" });
  expect(await readAnswer(coordinator, id)).toEqual({ decision: "allow" });
});

test("resumes the time limit once the question is answered", async () => {
  const { coordinator, submit } = await start(async (context) => {
    await ask(context);
    await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
    return { status: "failed", reason: "timeout", message: "", exit_code: null };
  });
  const id = submit({ timeout_seconds: 3 });
  await expectStatus(coordinator, id, "waiting");
  coordinator.answer(id, "q1", { decision: "allow" });
  expect(await waitForOutcome(coordinator, id)).toMatchObject({ reason: "timeout" });
});

test("keeps several questions open, and continues the run when the last is answered", async () => {
  const { coordinator, submit } = await start((context) =>
    Promise.all(["q1", "q2", "q3"].map((id) => ask(context, id))),
  );
  const id = submit();
  await poll(() => questionEvents(coordinator, id).filter(({ type }) => type === "permission_request").length).toBe(3);
  coordinator.answer(id, "q2", { decision: "deny" });
  coordinator.answer(id, "q3", { decision: "allow" });
  expect(coordinator.runs.get(id)!.status).toBe("waiting");
  coordinator.answer(id, "q1", { decision: "stop" });
  expect(await readAnswer(coordinator, id)).toEqual([
    { decision: "stop" },
    { decision: "deny" },
    { decision: "allow" },
  ]);
  expect(
    questionEvents(coordinator, id).filter((event) => event.type === "status" && event.status === "running"),
  ).toHaveLength(2);
});

test("does not ask again for a tool that was allowed for the session", async () => {
  const { coordinator, submit } = await start(async (context) => [
    await ask(context, "q1"),
    await ask(context, "q2"),
    await ask(context, "q3", "browser"),
  ]);
  const id = submit({}, { granted_tools: ["browser"] });
  await expectStatus(coordinator, id, "waiting");
  coordinator.answer(id, "q1", { decision: "allow", remember: "session" });
  expect(await readAnswer(coordinator, id)).toEqual([
    { decision: "allow", remember: "session" },
    { decision: "allow" },
    { decision: "allow" },
  ]);
  const decisions = coordinator.events(id).filter(({ type }) => type === "permission_decision");
  expect(decisions).toEqual([
    { type: "permission_decision", request_id: "q2", decision: "allow", by: "session" },
    { type: "permission_decision", request_id: "q3", decision: "allow", by: "session" },
  ]);
});

test("ignores an answer to a closed or unknown question, with a notice", async () => {
  const { coordinator, submit, notices } = await start(async (context) => [
    await ask(context, "q1"),
    await ask(context, "q2"),
  ]);
  const id = submit();
  await expectStatus(coordinator, id, "waiting");
  coordinator.answer(id, "other", { decision: "stop" });
  coordinator.answer(id, "q1", { decision: "allow" });
  coordinator.answer(id, "q1", { decision: "stop" });
  await poll(() => notices.length).toBe(2);
  expect(notices).toEqual([
    expect.stringMatching(/question other.*the run did not ask it/),
    expect.stringMatching(/question q1.*closed/),
  ]);
  coordinator.answer(id, "q2", { decision: "deny" });
  expect(await readAnswer(coordinator, id)).toEqual([{ decision: "allow" }, { decision: "deny" }]);
});

test("denies a second question with the same request_id instead of reusing the first answer", async () => {
  const { coordinator, submit } = await start(async (context) => [
    await ask(context),
    await ask(context),
    await context.ask({ request_id: "q1", tool: "shell", input: "rm" }),
  ]);
  const id = submit();
  await expectStatus(coordinator, id, "waiting");
  coordinator.answer(id, "q1", { decision: "allow" });
  expect(await readAnswer(coordinator, id)).toEqual([
    { decision: "allow" },
    { decision: "allow" },
    { decision: "deny", message: expect.stringContaining("request_id") },
  ]);
});

test("denies a question that is too large for the log", async () => {
  const { coordinator, submit } = await start((context) =>
    context.ask({ request_id: "q1", tool: "t", input: "x".repeat(2 ** 20) }),
  );
  expect(await readAnswer(coordinator, submit())).toMatchObject({
    decision: "deny",
    message: expect.stringContaining("longer than"),
  });
});

test("stops a waiting run at once", async () => {
  const { coordinator, submit } = await start((context) => ask(context));
  const id = submit();
  await expectStatus(coordinator, id, "waiting");
  coordinator.order(id, { stop: "approval_expired" });
  expect(await waitForOutcome(coordinator, id)).toMatchObject({ status: "completed", text: '{"decision":"stop"}' });
});

test("parks a run that waits too long, and continues it with the answer", async () => {
  const { coordinator, submit, runner } = await start(createAskingExecutor, parkCapabilities);
  const id = submit({ park_after_seconds: 0.05 });
  await expectStatus(coordinator, id, "parked");
  expect(coordinator.runs.get(id)!.parked).toEqual({ status: "parked", why: "approval" });
  await poll(() => runner.running).toBe(0);
  coordinator.answer(id, "q1", { decision: "allow", input: { a: 2 } });
  expect(await readAnswer(coordinator, id)).toEqual({ decision: "allow", input: { a: 2 } });
  expect(coordinator.runs.get(id)!.attempt).toBe(2);
  // The second attempt did not ask again.
  expect(questionEvents(coordinator, id).filter(({ type }) => type === "permission_request")).toHaveLength(1);
});

test("ignores answers of earlier attempts in an attempt that starts from scratch", async () => {
  const { coordinator, submit } = await start((context) => ask(context));
  const id = submit(
    {},
    { answers: [{ request_id: "q1", tool: "shell", input: { a: 1 }, answer: { decision: "allow" } }] },
  );
  await expectStatus(coordinator, id, "waiting");
  coordinator.answer(id, "q1", { decision: "deny" });
  expect(await readAnswer(coordinator, id)).toEqual({ decision: "deny" });
});

test("a parked run does not run on_finish, and keeps its session's directories", async () => {
  const { coordinator, submit } = await start(async (context, { attempt }) => {
    if (attempt > 1) return context.dirs.work;
    await save(context);
    await ask(context);
    return { status: "parked", why: "approval" };
  }, parkCapabilities);
  const id = submit({ park_after_seconds: 0.05, on_finish: "true" });
  await expectStatus(coordinator, id, "parked");
  expect(coordinator.events(id).filter(({ type }) => type === "execution_started")).toEqual([]);
  coordinator.answer(id, "q1", { decision: "allow" });
  // A resume fails without the directory.
  expect(await readAnswer(coordinator, id)).toContain(id);
  expect(coordinator.events(id).filter(({ type }) => type === "execution_started")).toHaveLength(1);
});

test.each(["drain", "stop"] as const)("%s parks a waiting run at once", async (how) => {
  const { coordinator, submit, runner } = await start(createAskingExecutor, parkCapabilities);
  const id = submit();
  await expectStatus(coordinator, id, "waiting");
  await runner[how]();
  expect(coordinator.runs.get(id)!.status).toBe("parked");
});

test("stop aborts a run that does not park in time", async () => {
  const { coordinator, submit, runner } = await start(async (context) => {
    await save(context);
    await ask(context);
    await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
    return { status: "cancelled", by: "shutdown" };
  }, parkCapabilities);
  const id = submit();
  await expectStatus(coordinator, id, "waiting");
  await runner.stop();
  expect(coordinator.runs.get(id)!.status).toBe("pending");
});

test("keeps waiting for an answer if the executor cannot park", async () => {
  const { coordinator, submit, runner } = await start((context) => ask(context));
  const id = submit({ park_after_seconds: 0.01 });
  await expectStatus(coordinator, id, "waiting");
  const drainResult = runner.drain();
  coordinator.answer(id, "q1", { decision: "allow" });
  expect(await readAnswer(coordinator, id)).toEqual({ decision: "allow" });
  await drainResult;
});

test.each([
  ["budget", "budget_exceeded", {}],
  ["usage_limit", "provider_rate_limit", {}],
  ["approval", "approval_expired", {}],
  ["approval", "approval_expired", parkCapabilities],
] as const)(
  "a run that parks for %s but cannot park, or has no saved state, fails with %s",
  async (why, reason, can) => {
    const { coordinator, submit } = await start(() => Promise.resolve({ status: "parked", why }), can);
    expect(await waitForOutcome(coordinator, submit())).toMatchObject({ status: "failed", reason });
  },
);

test("cancels a run that is stopped while it parks", async () => {
  const { coordinator, submit } = await start(async (context) => {
    await save(context);
    await ask(context);
    return { status: "parked", why: "approval" };
  }, parkCapabilities);
  const id = submit();
  await expectStatus(coordinator, id, "waiting");
  coordinator.order(id, { stop: "user" });
  expect(await waitForOutcome(coordinator, id)).toEqual({ status: "cancelled", by: "user" });
});

test.each([
  ["with its next save", async (context: RunContext) => save(context)],
  ["with its next report", async () => undefined],
])("an executor that can park learns %s that the daily budget is spent", async (_how, act) => {
  const { coordinator, submit } = await start(async (context) => {
    await save(context);
    await ask(context);
    await act(context);
    if (!context.overBudget.aborted)
      await new Promise((resolve) => context.overBudget.addEventListener("abort", resolve));
    return { status: "parked", why: "budget" };
  }, parkCapabilities);
  const id = submit();
  await expectStatus(coordinator, id, "waiting");
  coordinator.overBudget.add(id);
  coordinator.answer(id, "q1", { decision: "allow" });
  await expectStatus(coordinator, id, "parked");
});

test("stops a run at the daily budget if its executor cannot park", async () => {
  const { coordinator, submit } = await start(async (context) => {
    const { signal } = context;
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return { status: "failed", reason: "budget_exceeded", message: String(signal.reason), exit_code: null };
  });
  const id = submit();
  coordinator.overBudget.add(id);
  expect(await waitForOutcome(coordinator, id)).toMatchObject({ reason: "budget_exceeded", message: "budget" });
});

test("delivers a person's messages in order, also while the run waits", async () => {
  const { coordinator, submit } = await start(
    async (context) => {
      const texts: string[] = [];
      const received = (async () => {
        for await (const { text } of context.input) if (texts.push(text) === 2) return;
      })();
      await ask(context);
      await received;
      return texts;
    },
    { input: true },
  );
  const id = submit();
  await expectStatus(coordinator, id, "waiting");
  coordinator.order(id, { input: { text: "one", seq: 1 } });
  coordinator.answer(id, "q1", { decision: "allow" });
  coordinator.order(id, { input: { text: "two", seq: 2 } });
  expect(await readAnswer(coordinator, id)).toEqual(["one", "two"]);
});

test("accepts an answer to a question whose request_id contains a secret, by the id that was recorded", async () => {
  const secret = "canary-6f1d20b7e4";
  const { coordinator, submit } = await start((context) => ask(context, `call-${secret}`));
  const id = submit();
  await expectStatus(coordinator, id, "waiting");
  const questionEvent = questionEvents(coordinator, id).find(({ type }) => type === "permission_request");
  const request_id = questionEvent?.type === "permission_request" ? questionEvent.request_id : "";
  expect(request_id).not.toContain(secret);
  coordinator.answer(id, request_id, { decision: "allow" });
  expect(await readAnswer(coordinator, id)).toEqual({ decision: "allow" });
});
