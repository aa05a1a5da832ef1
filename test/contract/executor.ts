import { expect } from "vitest";
import type { RunEvent } from "../../src/model/event.ts";
import type { Executor, Invocation, RunContext } from "../../src/model/executor.ts";
import { failureReasons, type StopReason } from "../../src/model/states.ts";
import type { Case } from "./contract.ts";

/** An executor, and invocations that make it do each kind of thing. */
export interface ExecutorSubject {
  executor: Executor;
  succeeding: Invocation;
  failing: Invocation;
  /** Goes on until it is stopped. */
  endless: Invocation;
  /** A context over real processes and directories; `events` sees what was emitted, `alive` what still runs. */
  open(): Promise<{
    context: RunContext;
    events: RunEvent[];
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
    title: "answers an expected failure with an outcome, not with a rejection",
    async check(make) {
      const { executor, failing, open } = await make();
      const outcome = await executor.run(failing, (await open()).context);
      expect(outcome.status).toBe("failed");
      if (outcome.status === "failed") expect(failureReasons).toContain(outcome.reason);
    },
  },
  {
    title: "emits no status and no result itself: those are the scaffold's",
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
      await expect.poll(alive, { timeout: 20_000 }).toBeGreaterThan(0);
      abort("user");
      expect(await outcome).toEqual({ status: "cancelled", by: "user" });
      expect(await alive()).toBe(0);
    },
  },
  {
    title: "says that it timed out when its time is over",
    async check(make) {
      const { executor, endless, open } = await make();
      const { context, abort, alive } = await open();
      const outcome = executor.run(endless, context);
      await expect.poll(alive, { timeout: 20_000 }).toBeGreaterThan(0);
      abort("timeout");
      expect(await outcome).toMatchObject({ status: "failed", reason: "timeout" });
    },
  },
  {
    title: "does not go on while an emit is held back",
    async check(make) {
      const { executor, succeeding, open } = await make();
      const { context } = await open();
      let held = 0;
      const emit: RunContext["emit"] = async (event) => {
        expect(held).toBe(0);
        held++;
        await context.emit(event);
        held--;
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
];
