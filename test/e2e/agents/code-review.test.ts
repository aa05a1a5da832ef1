import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { Run } from "../../../src/model/run.ts";
import { prepareClient } from "../../clients/clients.ts";
import { type ModelServer, startModelServer } from "../../model-server/server.ts";
import { drover, createDirectory } from "../drover.ts";

let model: ModelServer | null = null;
afterEach(() => model?.stop());

/** Runs commands as a person would, with no coordinator running. */
async function open() {
  const cwd = createDirectory();
  const home = join(cwd, "home");
  mkdirSync(home);
  model = await startModelServer([
    {
      when: "Mind the locks.",
      turns: [
        { tool: { name: "read_file", input: { path: "input.py" } } },
        { tool: { name: "write_file", input: { path: "review.md", content: "# Review\n\nNo locks." } } },
        { text: "The review is written." },
      ],
    },
    { when: /Review the code in the file input\.txt/, turns: [{ text: "It does nothing." }] },
  ]);
  const { bin, env } = prepareClient("claude", { home, url: model.url });
  const runEnv = { ...env, CLAUDE_BIN: bin, DROVER_STATE_DIR: join(cwd, "state") };
  return (...args: string[]) => drover(args, { cwd, env: runEnv });
}

test("the review is the run's result and its only file, without the code", async () => {
  const run = await open();
  const code = "--help\nimport os  # 'quotes' \"and\" $(more)\n";
  const params = JSON.stringify({ code, language: "python" });
  const { stdout, code: exit } = await run(
    "run",
    "code-review",
    "--params",
    params,
    "--prompt",
    "Mind the locks.",
    "--json",
  );
  const finishedRun = JSON.parse(stdout) as Run;
  expect(finishedRun).toMatchObject({ status: "completed", result_text: "# Review\n\nNo locks." });
  expect(exit).toBe(0);
  const read = model!.requests.flatMap(({ messages }) => messages.flatMap(({ tool_results }) => tool_results));
  expect(read.join("\n")).toContain("import os");
  const files = await run("runs", "files", finishedRun.run_id);
  expect(files.stdout.trim().split("\n")).toHaveLength(1);
  expect((await run("runs", "files", finishedRun.run_id, "review.md")).stdout).toBe("# Review\n\nNo locks.");
});

test("the answer of an engine that writes no file becomes the file", async () => {
  const run = await open();
  const { stdout } = await run("run", "code-review", "--code", "pass", "--json");
  const finishedRun = JSON.parse(stdout) as Run;
  expect(finishedRun).toMatchObject({ status: "completed", result_text: "It does nothing." });
  expect((await run("runs", "files", finishedRun.run_id, "review.md")).stdout).toBe("It does nothing.\n");
});
