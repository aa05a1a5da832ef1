import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createInvocation } from "../../../test/fixtures/execute/memory-port.ts";
import { openContext } from "../../../test/fixtures/execute/open-context.ts";
import type { Agent } from "../../model/agent.ts";
import type { Invocation } from "../../model/executor.ts";
import { defineExecutor, type ExecutorDefinition, RunFailure } from "./define-executor.ts";

const opened: Awaited<ReturnType<typeof openContext>>[] = [];
afterEach(async () => {
  for (const fixture of opened.splice(0)) await fixture.close();
});

async function open() {
  const fixture = await openContext();
  opened.push(fixture);
  return fixture;
}

const createAutonomousInvocation = (overrides: Partial<Invocation> = {}, agent: Partial<Agent> = {}): Invocation =>
  createInvocation("r1", { type: "autonomous", ...agent }, overrides);

async function run(definition: Partial<ExecutorDefinition>, invocation = createAutonomousInvocation()) {
  const { context, events, kept, directory, alive } = await open();
  const executor = defineExecutor({ name: "test", execute: async () => undefined, ...definition });
  const outcome = await executor.run(invocation, context);
  expect(await alive()).toBe(0);
  return { outcome, events, kept, work: join(directory, "work") };
}

const sh = (script: string) => ["/bin/sh", "-c", script] as const;

test("keeps text as response.txt if the run made no file", async () => {
  const { outcome, kept, events } = await run({ execute: async () => "the answer" });
  expect(outcome).toEqual({ status: "completed", exit_code: null, text: "the answer" });
  expect(kept).toEqual(["response.txt"]);
  expect(events[0]).toEqual({ type: "progress", percent: 10 });
});

test("ignores a response.txt in the run's temporary directory", async () => {
  const { outcome, kept } = await run({
    async execute({ tmpDir }) {
      await writeFile(join(tmpDir, "response.txt"), "mine");
      return "the answer";
    },
  });
  expect(outcome).toMatchObject({ status: "completed", text: "the answer" });
  expect(kept).toEqual(["response.txt"]);
});

test("keeps the files that the run made, and then writes no response.txt", async () => {
  const { outcome, kept } = await run({
    async execute({ workDir, runCli }) {
      await runCli({
        command: sh(
          "mkdir -p a/.git .b; echo 1 > a/one; echo 2 > .two; echo 3 > .b/x; echo 4 > a/.git/y; ln -s /etc/passwd link",
        ),
      });
      await writeFile(join(workDir, "three"), "3");
      return "done";
    },
  });
  expect(outcome).toMatchObject({ status: "completed", text: "done" });
  expect(kept).toEqual(["a/one", "three"]);
});

test("fails a run with neither text nor files", async () => {
  expect((await run({})).outcome).toMatchObject({ status: "failed", reason: "no_output" });
});

test("accepts data alone as a result", async () => {
  const { outcome, kept } = await run({ execute: async () => ({ data: { n: 1 }, exit_code: 0 }) });
  expect(outcome).toEqual({ status: "completed", exit_code: 0, text: null, data: { n: 1 } });
  expect(kept).toEqual([]);
});

test("does not keep unchanged files that existed before the run, or that setupWorkDir or writeInput wrote", async () => {
  const { context, kept, directory } = await open();
  await writeFile(join(directory, "work", "old.txt"), "old");
  const executor = defineExecutor({
    name: "test",
    setupWorkDir: ({ workDir }) => writeFile(join(workDir, "setup.txt"), "x"),
    async execute({ writeInput, workDir }) {
      await writeInput("prompt.md", "do it");
      await writeFile(join(workDir, "old.txt"), "new");
      await writeFile(join(workDir, "result.md"), await readFile(join(workDir, "prompt.md")));
    },
  });
  expect(await executor.run(createAutonomousInvocation(), context)).toMatchObject({ status: "completed" });
  expect(kept).toEqual(["old.txt", "result.md"]);
});

test("never overwrites a user's file with an input, and removes inputs from their directory", async () => {
  const { context, directory } = await open();
  const work = join(directory, "work");
  await writeFile(join(work, "mine.md"), "mine");
  const execute: ExecutorDefinition["execute"] = async ({ writeInput }) => {
    await writeInput("free.md", "x");
    await writeInput("mine.md", "x");
  };
  const outcome = await defineExecutor({ name: "test", execute }).run(
    createAutonomousInvocation({ project_dir: work }),
    context,
  );
  expect(outcome).toMatchObject({ status: "failed", reason: "refused" });
  expect(await readdir(work)).toEqual(["mine.md"]);
  expect(await readFile(join(work, "mine.md"), "utf8")).toBe("mine");
});

test("lets collectFiles choose among the files found", async () => {
  const { kept } = await run({
    async execute({ runCli }) {
      await runCli({ command: sh("echo 1 > review.md; echo 2 > code.py") });
    },
    collectFiles: (found) => found.filter(({ path }) => path.endsWith(".md")),
  });
  expect(kept).toEqual(["review.md"]);
});

test("keeps the first files by path and names the others with a reason", async () => {
  const { kept, events } = await run(
    {
      async execute({ runCli }) {
        await runCli({
          command: sh(
            "for i in 1 2 3 4; do echo $i > f$i; done; truncate -s 3M b; printf x > \"$(printf 'bad\\001')\"",
          ),
        });
      },
    },
    createAutonomousInvocation({ executor_config: { max_files: 2, max_file_mb: 2 } }),
  );
  expect(kept).toEqual(["f1", "f2"]);
  expect(events).toContainEqual({
    type: "system",
    subtype: "files_left_out",
    data: {
      count: 4,
      files: [
        { path: "bad\\u0001", reason: "name_has_control_characters" },
        { path: "b", reason: "too_large", size: 3 * 1024 * 1024 },
        { path: "f3", reason: "too_many", size: 2 },
        { path: "f4", reason: "too_many", size: 2 },
      ],
    },
  });
});

test("builds the prompt from the agent's first message, the run's prompt and the parameters", async () => {
  let prompt = "";
  let system: string | null = null;
  const invocation = createAutonomousInvocation(
    { prompt: "Look at this.", parameters: { language: "en", deep: true, code: "a\nb" } },
    { first_message: "Hello.", system_prompt: "Be brief." },
  );
  await run(
    {
      async execute(job) {
        ({ prompt, systemPrompt: system } = job);
      },
    },
    invocation,
  );
  expect(prompt).toBe("Hello.\n\nLook at this.\n\nlanguage: en\ndeep: true\ncode:\na\nb");
  expect(system).toBe("Be brief.");
});

test("keeps progress between 0 and 100 and never lowers it", async () => {
  const { events } = await run({
    async execute({ reportProgress }) {
      for (const percent of [5, 50, 30, 900, Number.NaN]) await reportProgress(percent, "so far");
    },
  });
  expect(events.filter(({ type }) => type === "progress").map((event) => "percent" in event && event.percent)).toEqual([
    10, 10, 50, 50, 100, 100,
  ]);
});

test("fails a run whose program exits non-zero, with the start and end of stderr, and keeps its files", async () => {
  const { outcome, kept } = await run({
    async execute({ runCli }) {
      await runCli({ command: sh("echo made > made.txt; seq 100000 >&2; echo the cause >&2; exit 7") });
    },
  });
  expect(outcome).toEqual({
    status: "failed",
    reason: "exit_nonzero",
    message: expect.stringMatching(/^1\n2\n3\n[^]*\n\[\.\.\.\]\n[^]*\n100000\nthe cause$/) as string,
    exit_code: 7,
  });
  expect(kept).toEqual(["made.txt"]);
});

test.each([
  ["a missing program", ["/nowhere/at-all"] as const, "command_not_found"],
  ["a program killed by a signal", sh("kill -9 $$"), "signalled"],
])("reports %s with its own reason", async (_title, command, reason) => {
  const { outcome } = await run({
    async execute({ runCli }) {
      await runCli({ command });
    },
  });
  expect(outcome).toMatchObject({ status: "failed", reason });
});

test("names a missing program with the path that was tried", async () => {
  const { outcome, work } = await run({
    async execute({ runCli }) {
      await runCli({ command: ["./bin/parrot"] });
    },
  });
  const message = expect.stringContaining(`Command not found: ${join(work, "bin", "parrot")}.`) as string;
  expect(outcome).toMatchObject({ status: "failed", reason: "command_not_found", message });
});

test("lets an executor find its own programs through runnerDir", async () => {
  const { context, directory } = await open();
  await mkdir(join(directory, "bin"));
  await writeFile(join(directory, "bin", "parrot"), '#!/bin/sh\necho "$1"\n', { mode: 0o755 });
  const executor = defineExecutor({
    name: "test",
    execute: async ({ runCli, runnerDir }) => (await runCli({ command: [join(runnerDir, "bin/parrot"), "hi"] })).stdout,
  });
  expect(await executor.run(createAutonomousInvocation(), context)).toMatchObject({
    status: "completed",
    text: "hi\n",
  });
});

test("reports a program's own time limit as a timeout of the run", async () => {
  const { outcome } = await run({
    async execute({ runCli }) {
      await runCli({ command: sh("echo half; sleep 1000"), timeoutMs: 4000 });
    },
  });
  expect(outcome).toMatchObject({ status: "failed", reason: "timeout", text: "half\n" });
});

test("returns a non-zero exit code instead of failing the run with check: false", async () => {
  const { outcome, events } = await run({
    async execute({ runCli }) {
      const { exitCode, stdout, stderr } = await runCli({
        command: sh('cat; echo "$WORD" >&2; exit 3'),
        stdin: "in",
        env: { WORD: "w" },
        check: false,
      });
      return JSON.stringify({ exitCode, stdout, stderr });
    },
  });
  expect(outcome).toMatchObject({ text: '{"exitCode":3,"stdout":"in","stderr":"w\\n"}' });
  expect(events).toContainEqual({ type: "output", stream: "stdout", text: "in" });
});

test("passes lines to onLine in order and one at a time, and does not log them", async () => {
  const lines: string[] = [];
  const { events } = await run({
    async execute({ runCli }) {
      await runCli({
        command: sh("printf 'one\\ntwo\\n\\nthree'"),
        async onLine(line) {
          await new Promise((resolve) => setImmediate(resolve));
          lines.push(line);
        },
      });
      return lines.join();
    },
  });
  expect(lines).toEqual(["one", "two", "three"]);
  expect(events.filter(({ type }) => type === "output")).toEqual([]);
});

test("stops the program if onLine throws", async () => {
  const { context, alive } = await open();
  const executor = defineExecutor({
    name: "test",
    async execute({ runCli }) {
      await runCli({
        command: sh("echo go; sleep 1000"),
        onLine() {
          throw new RunFailure("provider_invalid_response", "not that");
        },
      });
    },
  });
  expect(await executor.run(createAutonomousInvocation(), context)).toMatchObject({
    reason: "provider_invalid_response",
  });
  expect(await alive()).toBe(0);
});

test("fails the run with the reason of a RunFailure, and rethrows any other error", async () => {
  const failedRun = await run({ execute: () => Promise.reject(new RunFailure("provider_auth", "log in first")) });
  expect(failedRun.outcome).toEqual({
    status: "failed",
    reason: "provider_auth",
    message: "log in first",
    exit_code: null,
  });
  await expect(run({ execute: () => Promise.reject(new TypeError("a bug")) })).rejects.toThrow("a bug");
});

test("returns a given outcome unchanged and keeps the files", async () => {
  const outcome = { status: "failed", reason: "permission_denied", message: "no", exit_code: 0 } as const;
  const result = await run({
    async execute({ workDir }) {
      await mkdir(join(workDir, "out"));
      await writeFile(join(workDir, "out", "a.txt"), "a");
      return { outcome };
    },
  });
  expect(result.outcome).toEqual(outcome);
  expect(result.kept).toEqual(["out/a.txt"]);
});

test("keeps no files of a cancelled run, but keeps those of a run that timed out", async () => {
  for (const reason of ["user", "timeout"] as const) {
    const { context, abort, kept, alive } = await open();
    const executor = defineExecutor({
      name: "test",
      async execute({ runCli }) {
        await runCli({ command: sh("echo made > made.txt; sleep 1000 & wait"), onLine: () => undefined });
      },
    });
    const outcome = executor.run(createAutonomousInvocation(), context);
    await expect.poll(() => readdir(context.dirs.work)).toEqual(["made.txt"]);
    abort(reason);
    expect(await outcome).toMatchObject(
      reason === "user" ? { status: "cancelled", by: "user" } : { reason: "timeout" },
    );
    expect(kept).toEqual(reason === "user" ? [] : ["made.txt"]);
    expect(await alive()).toBe(0);
  }
});
