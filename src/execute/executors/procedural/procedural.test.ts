import { afterEach, expect, test } from "vitest";
import { createInvocation } from "../../../../test/fixtures/execute/memory-port.ts";
import { openContext } from "../../../../test/fixtures/execute/open-context.ts";
import { createLazySchemas } from "../../../compose/lazy-schemas.ts";
import type { Agent } from "../../../model/agent.ts";
import type { Invocation } from "../../../model/executor.ts";
import { createRedactor } from "../../../redact/redactor.ts";
import { createProceduralExecutor, type ProceduralOptions } from "./procedural.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
});

async function run(
  agent: Partial<Agent>,
  overrides: Partial<Invocation> = {},
  options: Partial<ProceduralOptions> = {},
) {
  const opened = await openContext();
  const schemas = createLazySchemas();
  cleanups.push(opened.close, schemas.stop);
  const executor = createProceduralExecutor({
    runnerDirectory: opened.directory,
    variables: { allowed: [], env: process.env },
    redactor: createRedactor({ variables: { APP_TOKEN: "s3cret-value-123" } }),
    maxOutputBytes: 1024 * 1024,
    checkOutput: schemas.check,
    ...options,
  });
  return {
    outcome: await executor.run(createInvocation("r", agent, overrides), opened.context),
    events: opened.events,
  };
}

const node = (source: string): Partial<Agent> => ({ command: `"${process.execPath}" -e '${source}'` });

test.each(["resume", "fork"] as const)("refuses %s with an explicit message", async (mode) => {
  const { outcome } = await run({ command: "true" }, { mode });
  expect(outcome).toEqual({
    status: "failed",
    reason: "refused",
    message: "Procedural agents cannot resume or fork a session. Start a new run instead.",
    exit_code: null,
  });
});

test("parses stdout into data only if it is JSON", async () => {
  expect((await run({ command: "printf '{\"a\":[1]}'" })).outcome).toEqual({
    status: "completed",
    exit_code: 0,
    text: '{"a":[1]}',
    data: { a: [1] },
  });
  expect((await run({ command: "printf 'null'" })).outcome).toEqual({
    status: "completed",
    exit_code: 0,
    text: "null",
    data: null,
  });
  expect((await run({ command: "printf 'truly not'" })).outcome).toEqual({
    status: "completed",
    exit_code: 0,
    text: "truly not",
  });
});

test("parses data from the whole output even if the text is truncated", async () => {
  const { outcome } = await run(
    node('console.log(JSON.stringify({ list: Array(20000).fill("0123456789") }))'),
    {},
    { maxOutputBytes: 1000 },
  );
  if (outcome.status !== "completed") throw new Error(JSON.stringify(outcome));
  expect((outcome.data as { list: string[] }).list).toHaveLength(20_000);
  expect(outcome.text!.length).toBeLessThan(1200);
  expect(outcome.text).toContain("bytes not kept");
});

test.each([
  ["", {}],
  [" ", { output_schema: { type: "array" } }],
])("reports JSON above 16 MB as too large, and fails it against an output_schema", async (blank, overrides) => {
  const source = `process.stdout.write("${blank}"); process.stdout.write("[" + "1,".repeat(9 * 1024 * 1024) + "1]\\n")`;
  const { outcome, events } = await run({ ...node(source), ...overrides });
  const message = expect.stringMatching(/^The output is JSON of 1887437[23] bytes, which is too large/) as string;
  expect(outcome).toMatchObject(
    "output_schema" in overrides ? { status: "failed", reason: "invalid_output", message } : { status: "completed" },
  );
  expect("data" in outcome).toBe(false);
  expect(events).toContainEqual({ type: "error", code: "result_truncated", message });
});

test("keeps JSON with an inexact number as text, and reports it", async () => {
  const { outcome, events } = await run({ command: "printf '{\"a\":[1,12345678901234567890]}'" });
  expect(outcome).toMatchObject({ status: "completed", text: '{"a":[1,12345678901234567890]}' });
  expect("data" in outcome).toBe(false);
  const message = expect.stringContaining("12345678901234567890 at a.1, which result_data cannot hold") as string;
  expect(events).toContainEqual({ type: "error", code: "result_inexact", message });
  expect((await run({ command: "printf 1e400", output_schema: {} })).outcome).toMatchObject({
    status: "failed",
    reason: "invalid_output",
  });
});

test("checks a result against the output_schema", async () => {
  const output_schema = { type: "object", required: ["ok"], properties: { ok: { type: "boolean" } } };
  expect((await run({ command: "printf '{\"ok\":true}'", output_schema })).outcome).toMatchObject({
    status: "completed",
  });
  expect((await run({ command: "printf '{\"ok\":1}'", output_schema })).outcome).toMatchObject({
    status: "failed",
    reason: "invalid_output",
    exit_code: 0,
    data: { ok: 1 },
  });
  expect((await run({ command: "printf plain", output_schema })).outcome).toMatchObject({
    status: "failed",
    reason: "invalid_output",
    message: expect.stringContaining("not JSON"),
  });
});

test("reports the first 500 characters of stderr as the error, without secrets", async () => {
  const { outcome } = await run(node('process.stderr.write("s3cret-value-123 " + "x".repeat(1000)); process.exit(2)'));
  if (outcome.status !== "failed") throw new Error(JSON.stringify(outcome));
  expect(outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 2 });
  expect(outcome.message).toHaveLength(500);
  expect(outcome.message.startsWith("[redacted:APP_TOKEN] x")).toBe(true);
});

test("says where it searched for a command that does not exist, and what to do", async () => {
  const runnerDirectory = "/opt/tools";
  const getFailure = async (command: string) =>
    (await run({ command }, {}, { runnerDirectory })).outcome as { reason: string; message: string };
  const relative = await getFailure("scripts/none.sh --fast");
  expect(relative.reason).toBe("command_not_found");
  expect(relative.message).toContain("Command not found: scripts/none.sh.");
  expect(relative.message).toContain("relative to the runner's directory, /opt/tools");
  expect(relative.message).toContain('profiles/tools.json with {"type": "procedural", "agents_dir": "./agents/tools"}');
  const bareName = await getFailure("no-such-program");
  expect(bareName.message).toContain("neither in the runner's directory, /opt/tools, nor on PATH");
  expect((await getFailure("/none/at/all")).message).toContain("/none/at/all. The file does not exist");
});

test("distinguishes a death by signal, a missing command and one that cannot be executed", async () => {
  expect((await run({ command: "sh -c 'kill -9 $$'" })).outcome).toMatchObject({
    reason: "signalled",
    exit_code: null,
  });
  expect((await run({ command: "no-such-program" })).outcome).toMatchObject({ reason: "command_not_found" });
  expect((await run({ command: "/etc/passwd" })).outcome).toMatchObject({ reason: "refused" });
  expect((await run({ command: null })).outcome).toMatchObject({ reason: "refused" });
  expect((await run({ command: "true" }, { parameters: { x: "a\0b" } })).outcome).toMatchObject({
    reason: "refused",
    message: expect.stringContaining("NUL"),
  });
});
