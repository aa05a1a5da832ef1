import { expect } from "vitest";
import type { RunEvent } from "../../src/model/event.ts";
import type { Answer, Executor, Invocation, Question, RunContext } from "../../src/model/executor.ts";
import { failureReasons, type StopReason } from "../../src/model/states.ts";
import type { Case } from "./contract.ts";

/** An executor, and invocations that make it do each kind of thing. */
export interface ExecutorSubject {
  executor: Executor;
  succeeding: Invocation;
  failing: Invocation;
  /** Runs until it is stopped. */
  endless: Invocation;
  /** Runs a program that ignores SIGTERM until it is stopped. */
  stubborn: Invocation;
  /** Succeeds, and leaves a program running. */
  leaving: Invocation;
  /**
   * Present if the executor can ask: it asks once for permission to do something that leaves `did-41` in the run, and
   * continues whatever the answer. With `edited` as the input it leaves `did-42` instead.
   */
  asking?: { invocation: Invocation; edited: unknown };
  /** Present if the executor accepts input: it waits for one message and puts its text into the run. */
  receivingInput?: Invocation;
  /** A context over real processes and directories. `events` are the emitted events, `alive` what is still running. */
  open(): Promise<{
    context: RunContext;
    events: RunEvent[];
    saved: { state: { format: string; bytes: Uint8Array } | null };
    abort(reason: StopReason): void;
    alive(): Promise<number>;
  }>;
}

export const executorContract: readonly Case<ExecutorSubject>[] = [
  {
    title: "turns an invocation into one completed outcome",
    async check(make) {
      const { executor, succeeding, open } = await make();
      const outcome = await executor.run(succeeding, (await open()).context);
      expect(outcome.status).toBe("completed");
    },
  },
  {
    title: "reports an expected failure as an outcome, not as a rejection",
    async check(make) {
      const { executor, failing, open } = await make();
      const outcome = await executor.run(failing, (await open()).context);
      expect(outcome.status).toBe("failed");
      if (outcome.status === "failed") expect(failureReasons).toContain(outcome.reason);
    },
  },
  {
    title: "emits no status and no result itself: the scaffold does",
    async check(make) {
      const { executor, succeeding, open } = await make();
      const { context, events } = await open();
      await executor.run(succeeding, context);
      expect(events.filter(({ type }) => type === "status" || type === "result")).toEqual([]);
    },
  },
  {
    title: "ends as cancelled when a person stops it, and leaves nothing running",
    async check(make) {
      const { executor, endless, open } = await make();
      const { context, abort, alive } = await open();
      const outcome = executor.run(endless, context);
      await expect.poll(alive).toBeGreaterThan(0);
      abort("user");
      expect(await outcome).toEqual({ status: "cancelled", by: "user" });
      expect(await alive()).toBe(0);
    },
  },
  {
    title: "reports a timeout when its time is over",
    async check(make) {
      const { executor, endless, open } = await make();
      const { context, abort, alive } = await open();
      const outcome = executor.run(endless, context);
      await expect.poll(alive).toBeGreaterThan(0);
      abort("timeout");
      expect(await outcome).toMatchObject({ status: "failed", reason: "timeout" });
    },
  },
  {
    title: "ends when it is stopped even if its program ignores that, and leaves nothing running",
    async check(make) {
      const { executor, stubborn, open } = await make();
      const { context, abort, alive } = await open();
      const outcome = executor.run(stubborn, context);
      await expect.poll(alive).toBeGreaterThan(0);
      abort("user");
      expect(await outcome).toEqual({ status: "cancelled", by: "user" });
      expect(await alive()).toBe(0);
    },
  },
  {
    title: "stops what its program leaves running before it returns",
    async check(make) {
      const { executor, leaving, open } = await make();
      const { context, alive } = await open();
      expect(await executor.run(leaving, context)).toMatchObject({ status: "completed" });
      expect(await alive()).toBe(0);
    },
  },
  {
    title: "waits while an emit is held back",
    async check(make) {
      const { executor, succeeding, open } = await make();
      const { context } = await open();
      let pendingEmits = 0;
      const emit: RunContext["emit"] = async (event) => {
        expect(pendingEmits).toBe(0);
        pendingEmits++;
        await context.emit(event);
        pendingEmits--;
      };
      await executor.run(succeeding, { ...context, emit });
    },
  },
  {
    title: "refuses to resume where it says that it cannot",
    async check(make) {
      const { executor, succeeding, open } = await make();
      expect(executor.can.resume).toBeTypeOf("boolean");
      if (executor.can.resume) return;
      const outcome = await executor.run({ ...succeeding, mode: "resume" }, (await open()).context);
      expect(outcome).toMatchObject({ status: "failed", reason: "refused" });
    },
  },
  {
    title: "does what it asked for when that is allowed",
    async check(make) {
      const result = await ask(make, { decision: "allow" });
      if (result === null) return;
      expect(result.outcome.status).toBe("completed");
      expect(result.recordedText).toContain("did-41");
    },
  },
  {
    title: "uses the input that a person has edited",
    async check(make) {
      const result = await ask(make, "edited");
      if (result === null) return;
      expect(result.outcome.status).toBe("completed");
      expect(result.recordedText).toContain("did-42");
      expect(result.recordedText).not.toContain("did-41");
    },
  },
  {
    title: "does not do what is denied, passes the reason on and continues",
    async check(make) {
      const result = await ask(make, { decision: "deny", message: "not on a Friday" });
      if (result === null) return;
      expect(result.outcome.status).toBe("completed");
      expect(result.recordedText).not.toContain("did-41");
      expect(result.recordedText).toContain("not on a Friday");
    },
  },
  {
    title: "ends as permission_denied when the answer is to stop",
    async check(make) {
      const result = await ask(make, { decision: "stop" });
      if (result === null) return;
      expect(result.outcome).toMatchObject({ status: "failed", reason: "permission_denied" });
      expect(result.recordedText).not.toContain("did-41");
    },
  },
  {
    title: "parks where it can, and continues by the same question",
    async check(make) {
      const subject = await make();
      if (subject.executor.can.park) expect(subject.asking).toBeDefined();
      if (!subject.executor.can.park || !subject.asking) return;
      const parked = await askOnce(subject, { decision: "park" });
      expect(parked.outcome).toMatchObject({ status: "parked", why: "approval" });
      expect(parked.recordedText).not.toContain("did-41");
      expect(parked.state).not.toBeNull();
      const continued = await askOnce(subject, { decision: "allow" }, parked.state);
      expect(continued.outcome.status).toBe("completed");
      expect(continued.recordedText).toContain("did-41");
      expect(continued.questions).toEqual(parked.questions);
    },
  },
  {
    title: "receives what a person says while it works",
    async check(make) {
      const { executor, receivingInput, open } = await make();
      if (executor.can.input) expect(receivingInput).toBeDefined();
      if (!receivingInput) return;
      const { context, events } = await open();
      const input = (async function* () {
        yield { text: "look behind you", seq: 5 };
      })();
      const outcome = await executor.run(receivingInput, { ...context, input });
      expect(outcome.status).toBe("completed");
      expect(JSON.stringify([outcome, events])).toContain("look behind you");
    },
  },
];

async function ask(make: () => Promise<ExecutorSubject>, answer: Answer | "edited") {
  const subject = await make();
  if (subject.executor.can.ask) expect(subject.asking).toBeDefined();
  return subject.asking ? askOnce(subject, answer) : null;
}

/** Runs the invocation that asks once. `recordedText` is everything that the run produced. */
async function askOnce(
  { executor, asking, open }: ExecutorSubject,
  answer: Answer | "edited",
  continued: { format: string; bytes: Uint8Array } | null = null,
) {
  const { invocation, edited } = asking!;
  const { context, events, saved } = await open();
  saved.state = continued;
  const questions: Question[] = [];
  const outcome = await executor.run(
    { ...invocation, attended: true, continues: continued !== null },
    {
      ...context,
      async ask(question) {
        questions.push(JSON.parse(JSON.stringify(question)) as Question);
        return answer === "edited" ? { decision: "allow", input: edited } : answer;
      },
    },
  );
  expect(questions).toHaveLength(1);
  return { outcome, questions, recordedText: JSON.stringify([outcome, events]), state: saved.state };
}
