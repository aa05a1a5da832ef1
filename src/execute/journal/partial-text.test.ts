import { afterEach, expect, test } from "vitest";
import { createMemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import { runnerFixture } from "../../../test/fixtures/execute/open-runner.ts";
import type { Delta } from "../../model/executor.ts";
import { createRedactor } from "../../redact/redactor.ts";
import { createPartialText } from "./partial-text.ts";
import { defineExecutor } from "../scaffold/define-executor.ts";

const canary = "canary-6f1d20b7e4";
const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

function setUp() {
  const sentDeltas: Delta[] = [];
  const partialText = createPartialText(createRedactor({ variables: { TEST_API_KEY: canary } }), (delta) =>
    sentDeltas.push(delta),
  );
  const pushText = (text: string) => partialText.push({ kind: "assistant", text });
  return { partialText, pushText, text: () => sentDeltas.map(({ text }) => text).join("") };
}

test("redacts partial text before it leaves the runner", async () => {
  const { port, submit, runs } = createMemoryCoordinator();
  const reported: Delta[] = [];
  const fixture = runnerFixture({
    port: {
      ...port,
      report(request) {
        reported.push(...request.partials.map(({ delta }) => delta));
        return port.report(request);
      },
    },
    executor: defineExecutor({
      name: "test",
      async execute({ context }) {
        for (const text of ["the key is ", canary.slice(0, 9), canary.slice(9), ", take it.\n"])
          context.partial({ kind: "assistant", text });
        return "said";
      },
    }),
  });
  const runner = await fixture.open();
  cleanups.push(fixture.remove, runner.stop);
  const run_id = submit({ type: "autonomous" });
  await expect.poll(() => runs.get(run_id)!.outcome).toMatchObject({ status: "completed" });
  const text = reported.map((delta) => delta.text).join("");
  expect(text).toBe("the key is [redacted:TEST_API_KEY], take it.\n");
});

test("redacts a secret even if an event comes between its parts", () => {
  const { partialText, pushText, text } = setUp();
  pushText(`key ${canary.slice(0, 9)}`);
  partialText.completeMessage({ type: "progress", percent: 50 });
  pushText(`${canary.slice(9)} end\n`);
  expect(text()).toBe("key [redacted:TEST_API_KEY] end\n");
});

test("drops text that was held back when the complete message arrives", () => {
  const { partialText, pushText, text } = setUp();
  pushText("ends with can");
  partialText.completeMessage({ type: "assistant", text: "ends with can" });
  pushText("next\n");
  expect(text()).toBe("ends with next\n");
});

test("never splits a multi-byte character", () => {
  const { pushText, text } = setUp();
  for (const character of "héllo 🎉 日本\n") pushText(character);
  expect(text()).toBe("héllo 🎉 日本\n");
});
