import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createInvocation } from "../../../../test/fixtures/execute/memory-port.ts";
import { openContext } from "../../../../test/fixtures/execute/open-context.ts";
import { clientExecutors } from "./index.ts";

const opened: Awaited<ReturnType<typeof openContext>>[] = [];
afterEach(async () => {
  for (const fixture of opened.splice(0)) await fixture.close();
});

const recordedOutput = join(
  import.meta.dirname,
  "..",
  "..",
  "..",
  "..",
  "test",
  "fixtures",
  "clients",
  "claude-text.jsonl",
);
const answer = "Hello there, world of clients.";

/** The engine is a shell script that prints what the real claude printed. */
async function review(
  script: string,
  parameters: Record<string, unknown>,
  { prompt = null, config = {} }: { prompt?: string | null; config?: Record<string, unknown> } = {},
) {
  const fixture = await openContext();
  opened.push(fixture);
  const bin = join(fixture.directory, "claude");
  writeFileSync(bin, `#!/bin/sh\ncat > ../prompt.txt\n${script}\ncat ${recordedOutput}\n`, { mode: 0o755 });
  const executor = clientExecutors["code-review"]!({
    env: { PATH: "/usr/bin:/bin", HOME: fixture.directory, CLAUDE_BIN: bin },
    isRoot: false,
    isolation: () => Promise.resolve("pid"),
  });
  const invocation = createInvocation("r1", { type: "autonomous" }, { parameters, prompt, executor_config: config });
  const outcome = await executor.run(invocation, fixture.context);
  return { outcome, kept: fixture.kept, read: (name: string) => readFileSync(join(fixture.directory, name), "utf8") };
}

test("returns the review that the engine wrote and keeps only that file", async () => {
  const { outcome, kept, read } = await review("cp input.py copy.py; echo '# Fine' > review.md", {
    code: "print(1)\n",
    language: "Python",
  });
  expect(outcome).toEqual({ status: "completed", exit_code: 0, text: "# Fine" });
  expect(kept).toEqual(["review.md"]);
  expect(read("work/input.py")).toBe("print(1)\n");
  expect(read("prompt.txt")).toContain("input.py");
  expect(read("prompt.txt")).not.toContain("print(1)");
});

test("writes review.md from the answer if the engine wrote no file", async () => {
  const { outcome, kept, read } = await review("", { code: "x", language: "../../etc" }, { prompt: "Mind the locks." });
  expect(outcome).toMatchObject({ status: "completed", text: answer });
  expect(kept).toEqual(["review.md"]);
  expect(read("work/review.md")).toBe(`${answer}\n`);
  expect(read("work/input.txt")).toBe("x");
  expect(read("prompt.txt")).toContain("Mind the locks.");
});

test("does not follow a link in place of the review", async () => {
  const { outcome, kept } = await review("ln -s /etc/passwd review.md", { code: "x" });
  expect(outcome).toMatchObject({ status: "completed", text: answer });
  expect(kept).toEqual(["review.md"]);
});

test.each([
  [{ code: "" }, {}, "refused", "no code to review"],
  [{}, {}, "refused", "no code to review"],
  [{ code: "x", engine: "bard" }, {}, "refused", "engine must be one of claude"],
  [{ code: "x", engine: "constructor" }, {}, "refused", "engine must be one of claude"],
  [{ code: "x", engine: "codex" }, { engine: "claude" }, "refused", "only reviews with claude"],
  [{ code: "x", engine: "codex" }, {}, "dependency_missing", "@openai/codex"],
  [{ code: "x" }, { engine: "gemini" }, "dependency_missing", "@google/gemini-cli"],
  [{ code: "x" }, { engine: "claude", bin: "/nowhere/claude" }, "dependency_missing", "/nowhere/claude"],
])("fails %j with the profile %j as %s", async (parameters, config, reason, message) => {
  const { outcome } = await review("", parameters, { config });
  expect(outcome).toMatchObject({ status: "failed", reason, message: expect.stringContaining(message) as string });
});

test("accepts the profile's own engine as a parameter", async () => {
  const { outcome } = await review("", { code: "x", engine: "claude" }, { config: { engine: "claude" } });
  expect(outcome.status).toBe("completed");
});
