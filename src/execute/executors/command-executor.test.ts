import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createInvocation } from "../../../test/fixtures/execute/memory-port.ts";
import { openContext } from "../../../test/fixtures/execute/open-context.ts";
import type { Executor, RunContext } from "../../model/executor.ts";
import { createCommandExecutor } from "./command-executor.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
});

/** Runs a program given as source code. */
async function run(
  source: string,
  overrides: Partial<RunContext> = {},
  invocation = createInvocation("r1", { command: "true" }),
  can: Partial<Executor["can"]> = { ask: true },
) {
  const directory = await mkdtemp(join(tmpdir(), "drover-command-"));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, "program.cjs"), source);
  const opened = await openContext(overrides);
  cleanups.push(opened.close);
  const options = { runnerDirectory: directory, variables: { allowed: [], env: process.env } };
  const executor = createCommandExecutor({
    ...options,
    name: "program",
    can,
    command: `${process.execPath} ${join(directory, "program.cjs")}`,
  });
  return { outcome: await executor.run(invocation, opened.context), events: opened.events, kept: opened.kept };
}

const firstLine =
  'require("node:readline").createInterface({ input: process.stdin }).once("line", (line) => { const invocation = JSON.parse(line);';

test("passes the invocation on the first line and uses the result event as the outcome", async () => {
  const invocation = createInvocation(
    "r1",
    { command: "true" },
    { parameters: { a: 'x\n"y"' }, prompt: "hi", executor_config: { k: 1 } },
  );
  const { outcome } = await run(
    `${firstLine} console.log(JSON.stringify({ type: "result", status: "completed", reason: null, error: null, exit_code: 0, result_text: "t", result_data: invocation })); process.exit(0); });`,
    {},
    invocation,
  );
  // User input arrives as separate lines.
  const { inputs: _sentAsLines, ...data } = invocation;
  expect(outcome).toEqual({
    status: "completed",
    exit_code: 0,
    text: "t",
    data: JSON.parse(JSON.stringify(data)),
  });
});

test("passes events on, and reports other lines as errors without stopping", async () => {
  const { outcome, events } = await run(`
    console.log(JSON.stringify({ type: "assistant", text: "hello" }));
    console.log("not json");
    console.log(JSON.stringify({ type: "nonsense" }));
    console.log(JSON.stringify({ type: "progress", percent: 500 }));
    console.log(JSON.stringify({ type: "status", status: "completed" }));
    console.error("a note");
    process.exit(0);`);
  expect(outcome).toMatchObject({ status: "completed", exit_code: 0 });
  expect(events).toContainEqual({ type: "assistant", text: "hello" });
  expect(events).toContainEqual({ type: "output", stream: "stderr", text: "a note\n" });
  expect(events.flatMap((event) => (event.type === "error" ? [event.message] : []))).toEqual([
    "The executor printed a line that is not an event (it is not JSON): not json",
    expect.stringContaining('(unknown event type "nonsense")'),
    expect.stringContaining("(progress: percent: Too big: expected number to be <=100)"),
  ]);
  expect(events.filter(({ type }) => type === "status")).toEqual([]);
});

test("refuses a number that JavaScript cannot represent exactly: drops the event, or the data of a result", async () => {
  const result = '{"type":"result","status":"completed","reason":null,"error":null,"exit_code":0,"result_text":"t"';
  const { outcome, events } = await run(`
    console.log('{"type":"tool_use","tool_use_id":"1","name":"t","input":{"ids":[1,12345678901234567890]}}');
    console.log('{"type":"assistant","text":"12345678901234567890"}');
    console.log('${result},"result_data":{"id":12345678901234567890}}');`);
  expect(outcome).toEqual({ status: "completed", exit_code: 0, text: "t" });
  expect(events).toEqual([
    {
      type: "error",
      code: "event_inexact",
      message:
        "An event was dropped: JavaScript cannot represent the number 12345678901234567890 at input.ids.1 exactly. Send it as a string.",
    },
    { type: "assistant", text: "12345678901234567890" },
    expect.objectContaining({ code: "result_inexact", message: expect.stringContaining("at result_data.id exactly") }),
  ]);
});

test("decides by the exit code without a result event", async () => {
  const { outcome } = await run('console.error("why it failed"); process.exit(9);');
  expect(outcome).toMatchObject({ status: "failed", reason: "exit_nonzero", exit_code: 9, message: "why it failed" });
  const longOutput = await run('console.error("first\\n" + "noise\\n".repeat(9999) + "the cause"); process.exit(9);');
  expect(longOutput.outcome).toMatchObject({
    message: expect.stringMatching(/^first\n[^]*\[\.\.\.\][^]*\nthe cause$/),
  });
});

test("passes answers and input to the program as lines", async () => {
  const { outcome } = await run(
    `const seen = [];
     require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
       const received = JSON.parse(line);
       if (received.schema_version) console.log(JSON.stringify({ type: "permission_request", request_id: "q", tool: "shell", input: {} }));
       else seen.push(received);
       if (seen.length === 2) {
         console.log(JSON.stringify({ type: "result", status: "completed", reason: null, error: null, exit_code: 0, result_text: null, result_data: seen }));
         process.exit(0);
       }
     });`,
    {
      ask: () => Promise.resolve({ decision: "allow" }),
      input: {
        async *[Symbol.asyncIterator]() {
          yield { text: "more", seq: 5 };
        },
      },
    },
  );
  if (outcome.status !== "completed") throw new Error(JSON.stringify(outcome));
  expect(outcome.data).toEqual(
    expect.arrayContaining([
      { input: { text: "more", seq: 5 } },
      { answer: { request_id: "q", answer: { decision: "allow" } } },
    ]),
  );
});

test("denies a question that the profile does not allow, and reports it", async () => {
  const { outcome, events } = await run(
    `require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
       const received = JSON.parse(line);
       if (received.schema_version) console.log(JSON.stringify({ type: "permission_request", request_id: "q", tool: "shell", input: {} }));
       else {
         console.log(JSON.stringify({ type: "result", status: "completed", reason: null, error: null, exit_code: 0, result_text: received.answer.answer.decision, result_data: null }));
         process.exit(0);
       }
     });`,
    { ask: () => Promise.resolve({ decision: "allow" }) },
    createInvocation("r1", { command: "true" }),
    {},
  );
  expect(outcome).toMatchObject({ status: "completed", text: "deny" });
  expect(events).toContainEqual({
    type: "error",
    code: "undeclared_ask",
    message: "The executor program asks a question but does not declare can: { ask: true }.",
  });
});

test("reports a missing program as an outcome", async () => {
  const opened = await openContext();
  cleanups.push(opened.close);
  const executor = createCommandExecutor({
    runnerDirectory: opened.directory,
    variables: { allowed: [], env: process.env },
    name: "x",
    command: "bin/nosuch",
  });
  expect(await executor.run(createInvocation("r", { command: "true" }), opened.context)).toMatchObject({
    status: "failed",
    reason: "command_not_found",
  });
});

const autonomous = { type: "autonomous", command: null } as const;
const toPrintScript = (result: object) =>
  `console.log(JSON.stringify({ type: "result", status: "completed", reason: null, error: null, exit_code: 0, result_text: null, result_data: null, ...${JSON.stringify(result)} }));`;

test("collects the files of an autonomous agent's program", async () => {
  const withFile = await run(
    `require("node:fs").writeFileSync("made.txt", "made"); ${toPrintScript({ result_text: "t" })}`,
    {},
    createInvocation("r1", autonomous),
  );
  expect(withFile).toMatchObject({ outcome: { status: "completed", text: "t" }, kept: ["made.txt"] });
  const textOnly = await run(toPrintScript({ result_text: "only said" }), {}, createInvocation("r1", autonomous));
  expect(textOnly).toMatchObject({ outcome: { status: "completed" }, kept: ["response.txt"] });
  const withoutResult = await run(toPrintScript({}), {}, createInvocation("r1", autonomous));
  expect(withoutResult).toMatchObject({ outcome: { status: "failed", reason: "no_output" }, kept: [] });
  const procedural = await run('require("node:fs").writeFileSync("made.txt", "made");');
  expect(procedural).toMatchObject({ outcome: { status: "completed" }, kept: [] });
});
