import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { Run } from "../../../src/model/run.ts";
import { runsDirectory, workDirectory } from "../../../src/model/state-layout.ts";
import { prepareClient } from "../../clients/clients.ts";
import { type ModelServer, startModelServer } from "../../model-server/server.ts";
import { drover, createDirectory, exists, root } from "../drover.ts";

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

test("the directory of a review is removed when the run ends, whether it completed or failed", async () => {
  const cwd = createDirectory();
  const bin = join(cwd, "claude");
  const recorded = join(root, "test", "fixtures", "clients", "claude-text.jsonl");
  // An engine that notes where it works, writes a review, and fails if the code says so.
  writeFileSync(
    bin,
    `#!/bin/sh
     cat > /dev/null; pwd > ${join(cwd, "place")}; ls > ${join(cwd, "names")}
     grep -q fail input.txt && exit 1
     echo '# Fine' > review.md; cat ${recorded}`,
    { mode: 0o755 },
  );
  const state = join(cwd, "state");
  const env = { CLAUDE_BIN: bin, DROVER_STATE_DIR: state };
  for (const [code, expected] of [
    ["pass", { status: "completed", result_text: "# Fine" }],
    ["fail", { status: "failed" }],
  ] as const) {
    const { stdout } = await drover(["run", "code-review", "--code", code, "--json"], { cwd, env });
    expect(JSON.parse(stdout)).toMatchObject(expected);
    const place = readFileSync(join(cwd, "place"), "utf8").trim();
    expect(dirname(place)).toBe(workDirectory(runsDirectory(state)));
    expect(readFileSync(join(cwd, "names"), "utf8")).toContain("input.txt");
    expect(exists(place)).toBe(false);
    expect(readdirSync(dirname(place))).toEqual([]);
  }
});
