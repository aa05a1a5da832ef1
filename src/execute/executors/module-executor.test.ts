import { mkdtempSync, readdirSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createInvocation } from "../../../test/fixtures/execute/memory-port.ts";
import { openContext } from "../../../test/fixtures/execute/open-context.ts";
import { RequestError } from "../../model/errors.ts";
import { start } from "../../process/start.ts";
import { loadModuleExecutor } from "./module-executor.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
});

async function load(name: string, source: string) {
  const directory = mkdtempSync(join(tmpdir(), "drover-module-"));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, name), source);
  const cacheDirectory = join(directory, "cache");
  return {
    executor: await loadModuleExecutor({
      module: name,
      runnerDirectory: directory,
      cacheDirectory,
      config: { word: "hi" },
      start,
      env: process.env,
    }),
    cacheDirectory,
  };
}

async function run(executor: Awaited<ReturnType<typeof load>>["executor"]) {
  const opened = await openContext();
  cleanups.push(opened.close);
  return {
    outcome: await executor.run(createInvocation("r", { command: "true" }), opened.context),
    events: opened.events,
  };
}

test("loads a JavaScript module unchanged, with the profile's config", async () => {
  const { executor } = await load(
    "e.mjs",
    'export const createExecutor = (config) => ({ name: "js", can: {}, run: async () => ({ status: "completed", exit_code: null, text: config.word }) });',
  );
  expect((await run(executor)).outcome).toEqual({ status: "completed", exit_code: null, text: "hi" });
});

test("compiles a TypeScript module and its imports into the cache", async () => {
  const { executor, cacheDirectory } = await load(
    "e.ts",
    'import { join } from "node:path"; const text: string = join("a", "b"); export const executor = { name: "ts", can: {}, run: async () => ({ status: "completed", exit_code: 0, text }) as const };',
  );
  expect((await run(executor)).outcome).toEqual({ status: "completed", exit_code: 0, text: "a/b" });
  // The host program is compiled from source too.
  expect(readdirSync(cacheDirectory)).toHaveLength(2);
});

test.each(["e.ts", "e.mjs"])("lets a module in any directory import drover: %s", async (name) => {
  const { executor } = await load(
    name,
    'import { defineExecutor, RunFailure } from "drover"; if (!RunFailure) throw 1; export const executor = defineExecutor({ name: "made", variables: ["MINE_*"], async execute({ runCli }) { return (await runCli({ command: ["echo", "from drover"] })).stdout; } });',
  );
  expect(executor).toMatchObject({ name: "made", variables: ["MINE_*"], can: { resume: false } });
  expect((await run(executor)).outcome).toEqual({ status: "completed", exit_code: null, text: "from drover\n" });
});

test("refuses an invalid command, also if the module has its own copy of Drover", async () => {
  const { executor } = await load(
    "e.ts",
    'import { defineExecutor } from "drover"; export const executor = defineExecutor({ name: "made", async execute({ runCli }) { await runCli({ command: ["echo", "nul\\0"] }); } });',
  );
  const opened = await openContext({
    start: () => Promise.reject(new RequestError({ code: "DROVER-USE-006", message: "a NUL byte" })),
  });
  cleanups.push(opened.close);
  const outcome = await executor.run(createInvocation("r", { command: "true" }), opened.context);
  expect(outcome).toMatchObject({ status: "failed", reason: "refused", message: "a NUL byte" });
});

test("drops invalid events and outcomes", async () => {
  const { executor } = await load(
    "e.mjs",
    'export const executor = { name: "odd", can: {}, async run(_, context) { await context.emit({ type: "progress", percent: NaN }); return { status: "great", extra: 1 }; } };',
  );
  const { outcome, events } = await run(executor);
  expect(outcome).toEqual({
    status: "failed",
    reason: "internal",
    message: "The executor odd returned no valid outcome.",
    exit_code: null,
  });
  expect(events).toEqual([
    {
      type: "error",
      code: "bad_event",
      message:
        "The executor odd sent an invalid event, which was dropped: progress: percent: expected number, received null",
    },
  ]);
});

test("reports invalid events, usage, partials and questions with their type and field", async () => {
  const { executor } = await load(
    "e.mjs",
    `export const executor = { name: "odd", can: {}, async run(_, { emit, usage, partial, ask }) {
      await emit({ type: "tool_use", name: "shell", input: {} });
      await emit({ type: "assistent", text: "hi" });
      await emit("hi");
      await emit({ type: "tool_result", tool_use_id: 1, is_error: false });
      usage({ input_tokens: "many", output_tokens: 1 });
      partial({ type: "assistant", text: "hi" });
      const { decision } = await ask({ tool: "shell", input: {} });
      return { status: "completed", exit_code: null, text: decision };
    } };`,
  );
  const passed: unknown[] = [];
  const opened = await openContext({
    usage: (usage) => passed.push(usage),
    partial: (delta) => passed.push(delta),
    ask: (question) => Promise.reject(new Error(`asked ${JSON.stringify(question)}`)),
  });
  cleanups.push(opened.close);
  const outcome = await executor.run(createInvocation("r", { command: "true" }), opened.context);
  expect(outcome).toMatchObject({ status: "completed", text: "deny" });
  expect(passed).toEqual([]);
  expect(opened.events.map((event) => event.type === "error" && event.message)).toEqual([
    "The executor odd sent an invalid event, which was dropped: tool_use: tool_use_id: expected string, received undefined",
    'The executor odd sent an invalid event, which was dropped: unknown event type "assistent"; did you mean assistant?',
    "The executor odd sent an invalid event, which was dropped: an event must be an object",
    "The executor odd sent an invalid event, which was dropped: tool_result: tool_use_id: expected string, received number; output: is missing",
    "The executor odd sent an invalid event, which was dropped: usage: usage.input_tokens: expected number, received string; usage.cost_usd: expected number, received undefined",
    'The executor odd sent an invalid event, which was dropped: partial: expected { kind: "assistant" or "output", text }',
    "The executor odd sent an invalid event, which was dropped: permission_request: request_id: expected string, received undefined",
  ]);
});

test("reports an unknown failure reason as internal, with an error event", async () => {
  const { executor } = await load(
    "e.mjs",
    'import { defineExecutor, RunFailure } from "drover"; export const executor = defineExecutor({ name: "made", execute: () => Promise.reject(new RunFailure("time_out", "too late")) });',
  );
  const { outcome, events } = await run(executor);
  expect(outcome).toMatchObject({ status: "failed", reason: "internal", message: "too late" });
  expect(events.at(-1)).toEqual({
    type: "error",
    code: "bad_outcome",
    message:
      'The executor made failed with the unknown reason "time_out", which is reported as internal. Did you mean timeout? See docs/states.md for the list.',
  });
});

test.each([
  ["missing.mjs", null, "the file does not exist"],
  ["e.mjs", "export const other = 1;", /defineExecutor.*; it exports other\./],
  ["e.mjs", "const nothing = 1;", "it exports nothing"],
  ["e.mjs", "throw new Error('at load');", "at load"],
  ["e.ts", "const x: = 1;", "Unexpected"],
])("names an unusable module with the reason: %s %s", async (name, source, reason) => {
  const directory = mkdtempSync(join(tmpdir(), "drover-module-"));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  if (source !== null) await writeFile(join(directory, name), source);
  await expect(
    loadModuleExecutor({
      module: name,
      runnerDirectory: directory,
      cacheDirectory: join(directory, "cache"),
      config: {},
      start,
      env: process.env,
    }),
  ).rejects.toThrow(reason);
});
