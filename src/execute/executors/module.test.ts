import { mkdtempSync, readdirSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { invocationOf } from "../../../test/fixtures/execute/memory-port.ts";
import { openContext } from "../../../test/fixtures/execute/open-context.ts";
import { RequestError } from "../../model/errors.ts";
import { start } from "../../process/start.ts";
import { loadModuleExecutor } from "./module.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function load(name: string, source: string) {
  const folder = mkdtempSync(join(tmpdir(), "drover-module-"));
  closing.push(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, name), source);
  const cacheDirectory = join(folder, "cache");
  return {
    executor: await loadModuleExecutor({
      module: name,
      runnerDirectory: folder,
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
  closing.push(opened.close);
  return { outcome: await executor.run(invocationOf("r", { command: "true" }), opened.context), events: opened.events };
}

test("a JavaScript module is taken as it is, with the profile's config", async () => {
  const { executor } = await load(
    "e.mjs",
    'export const createExecutor = (config) => ({ name: "js", can: {}, run: async () => ({ status: "completed", exit_code: null, text: config.word }) });',
  );
  expect((await run(executor)).outcome).toEqual({ status: "completed", exit_code: null, text: "hi" });
});

test("a TypeScript module is compiled into the cache, with what it imports", async () => {
  const { executor, cacheDirectory } = await load(
    "e.ts",
    'import { join } from "node:path"; const text: string = join("a", "b"); export const executor = { name: "ts", can: {}, run: async () => ({ status: "completed", exit_code: 0, text }) as const };',
  );
  expect((await run(executor)).outcome).toEqual({ status: "completed", exit_code: 0, text: "a/b" });
  // and so is the host program, from these sources
  expect(readdirSync(cacheDirectory)).toHaveLength(2);
});

test.each(["e.ts", "e.mjs"])("a module anywhere may import drover: %s", async (name) => {
  const { executor } = await load(
    name,
    'import { defineExecutor, RunFailure } from "drover"; if (!RunFailure) throw 1; export const executor = defineExecutor({ name: "made", variables: ["MINE_*"], async execute({ runCli }) { return (await runCli({ command: ["echo", "from drover"] })).stdout; } });',
  );
  expect(executor).toMatchObject({ name: "made", variables: ["MINE_*"], can: { resume: false } });
  expect((await run(executor)).outcome).toEqual({ status: "completed", exit_code: null, text: "from drover\n" });
});

test("what a command cannot be is refused, also where the module has a Drover of its own", async () => {
  const { executor } = await load(
    "e.ts",
    'import { defineExecutor } from "drover"; export const executor = defineExecutor({ name: "made", async execute({ runCli }) { await runCli({ command: ["echo", "nul\\0"] }); } });',
  );
  const opened = await openContext({
    start: () => Promise.reject(new RequestError({ code: "DROVER-USE-006", message: "a NUL byte" })),
  });
  closing.push(opened.close);
  const outcome = await executor.run(invocationOf("r", { command: "true" }), opened.context);
  expect(outcome).toMatchObject({ status: "failed", reason: "refused", message: "a NUL byte" });
});

test("events and outcomes that are none do not get through", async () => {
  const { executor } = await load(
    "e.mjs",
    'export const executor = { name: "odd", can: {}, async run(_, context) { await context.emit({ type: "progress", percent: NaN }); return { status: "great", extra: 1 }; } };',
  );
  const { outcome, events } = await run(executor);
  expect(outcome).toEqual({
    status: "failed",
    reason: "internal",
    message: "The executor odd ended without an outcome.",
    exit_code: null,
  });
  expect(events).toEqual([
    {
      type: "error",
      code: "bad_event",
      message: "Left out, as odd sent it wrong: progress: percent: expected number, received null",
    },
  ]);
});

test("whatever is handed over wrong is told with its type and field, and nothing of it gets through", async () => {
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
  closing.push(opened.close);
  const outcome = await executor.run(invocationOf("r", { command: "true" }), opened.context);
  expect(outcome).toMatchObject({ status: "completed", text: "deny" });
  expect(passed).toEqual([]);
  expect(opened.events.map((event) => event.type === "error" && event.message)).toEqual([
    "Left out, as odd sent it wrong: tool_use: tool_use_id: expected string, received undefined",
    'Left out, as odd sent it wrong: there is no event type "assistent"; did you mean assistant?',
    "Left out, as odd sent it wrong: an event is an object",
    "Left out, as odd sent it wrong: tool_result: tool_use_id: expected string, received number; output: is missing",
    "Left out, as odd sent it wrong: usage: usage.input_tokens: expected number, received string; usage.cost_usd: expected number, received undefined",
    'Left out, as odd sent it wrong: partial: expected { kind: "assistant" or "output", text }',
    "Left out, as odd sent it wrong: permission_request: request_id: expected string, received undefined",
  ]);
});

test("a reason that is none is told as internal, and that it was none", async () => {
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
      'There is no reason "time_out", with which made failed, so it is told as internal. Did you mean timeout? docs/states.md lists them.',
  });
});

test.each([
  ["missing.mjs", null, "no such file"],
  ["e.mjs", "export const other = 1;", /defineExecutor.*; it exports other\./],
  ["e.mjs", "const nothing = 1;", "it exports nothing"],
  ["e.mjs", "throw new Error('at load');", "at load"],
  ["e.ts", "const x: = 1;", "Unexpected"],
])("a module that cannot be used is named with the reason: %s %s", async (name, source, reason) => {
  const folder = mkdtempSync(join(tmpdir(), "drover-module-"));
  closing.push(() => rm(folder, { recursive: true, force: true }));
  if (source !== null) await writeFile(join(folder, name), source);
  await expect(
    loadModuleExecutor({
      module: name,
      runnerDirectory: folder,
      cacheDirectory: join(folder, "cache"),
      config: {},
      start,
      env: process.env,
    }),
  ).rejects.toThrow(reason);
});
