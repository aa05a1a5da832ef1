import { expect, test } from "vitest";
import { createMemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import { poll, prepareRunners, waitForOutcome } from "../../../test/fixtures/execute/registered.ts";
import type { Turn } from "../../../test/model-server/script.ts";
import { startModelServer } from "../../../test/model-server/server.ts";
import { createModelExecutor } from "../executors/loop/model-executor.ts";

const { setUp, cleanups } = prepareRunners();

const turns: Record<string, Turn> = {
  answer: { text: "an answer" },
  hang: { hang: true },
  stall: { text: "an answer without its second half", stream_fault: "stalls" },
};

test("ends a run at its idle timeout if the model service sends nothing more, and closes the connection", async () => {
  const server = await startModelServer(({ messages }) => turns[messages.at(-1)!.text]!);
  cleanups.push(server.stop);
  let ids = 0;
  const executor = createModelExecutor({
    env: { ANTHROPIC_API_KEY: "key" },
    newId: () => `conversation-${++ids}`,
    version: "0",
    checkInput: async () => [],
    now: () => new Date(),
  });
  const coordinator = createMemoryCoordinator();
  await (await setUp(coordinator, { executor })).open();
  const submit = (prompt: string): string =>
    coordinator.submit(
      { type: "autonomous", provider: "anthropic", model: "m", idle_timeout_seconds: 5 },
      { prompt, executor_config: { base_url: server.url } },
    );
  // Loads the provider, so that the other runs send their requests long before their idle timeout.
  expect(await waitForOutcome(coordinator, submit("answer"))).toMatchObject({ status: "completed", text: "an answer" });
  const stalled = [submit("hang"), submit("stall")];
  await poll(() => server.stalledCount()).toBe(2);
  for (const id of stalled)
    expect(await waitForOutcome(coordinator, id)).toMatchObject({
      status: "failed",
      reason: "idle",
      message: expect.stringContaining("idle timeout"),
    });
  await poll(() => server.stalledCount()).toBe(0);
  // A stopped run does not try again.
  expect(server.requests).toHaveLength(3);
});
