import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { RunEvent } from "../../model/event.ts";
import type { ExecutionEnd, ExecutionStart } from "../../model/execution.ts";
import { noCorrelation } from "../../model/new-run.ts";
import { openNestedLog } from "./nested-log.ts";
import { openNestedSink } from "./nested-sink.ts";
import { recoverNested } from "./recover-nested.ts";

const directories: string[] = [];
afterEach(() => directories.splice(0).forEach((path) => rmSync(path, { recursive: true, force: true })));

const owner = { pid: 1, start: "outer", host: "here" };
const id = "01a1ed77-09ab-76ae-9d3e-aad11a2b46bf";

function openLog() {
  const runsDirectory = mkdtempSync(join(tmpdir(), "drover-nested-"));
  directories.push(runsDirectory);
  const events: RunEvent[] = [];
  const record = (event: RunEvent): void => void events.push(event);
  const options = { runsDirectory, run_id: "run", attempt: 2, owner, now: () => new Date(), record };
  return { events, options, log: openNestedLog(options) };
}

function sampleStart(overrides: object = {}): Omit<ExecutionStart, "execution_id" | "owner"> {
  return {
    command: "echo",
    argv: ["echo"],
    working_directory: "/",
    started_at: new Date().toISOString(),
    timeout_ms: null,
    limits: {},
    environment: { mode: "inherit", given: [], withheld: [] },
    correlation: noCorrelation,
    ...overrides,
  };
}

function sampleEnd(overrides: object = {}): Omit<ExecutionEnd, "execution_id" | "interrupted"> {
  return {
    exit_code: 0,
    signal: null,
    stopped: null,
    success: true,
    timed_out: false,
    ended_at: new Date().toISOString(),
    duration_ms: 0,
    isolation: "pid",
    leftovers: 0,
    resources: null,
    error: null,
    stdout_bytes: 0,
    stderr_bytes: 0,
    truncated: false,
    ...overrides,
  };
}

const line = (value: unknown): string => `${JSON.stringify(value)}\n`;
const types = (events: RunEvent[]): string[] =>
  events.map((event) => (event.type === "error" ? String(event.code) : event.type));

async function recordText(text: string): Promise<RunEvent[]> {
  const { events, log } = openLog();
  appendFileSync(log.path, text);
  await log.close();
  return events;
}

test("records the reports of a nested exec, marked as reported by a command, under ids of the attempt", async () => {
  const { events, log } = openLog();
  const sink = openNestedSink(log.path);
  sink.recordStart(id, { ...sampleStart({ command: "npm test" }), execution_id: "anything", owner });
  sink.recordEnd(id, { ...sampleEnd({ exit_code: 3, success: false }), execution_id: "anything", interrupted: false });
  await log.close();
  const execution_id = `run.2.${id}`;
  expect(sink.executionId(id)).toBe(execution_id);
  expect(events).toMatchObject([
    { type: "execution_started", execution: { execution_id, command: "npm test", owner, reported_by: "command" } },
    { type: "execution_ended", execution: { execution_id, exit_code: 3, interrupted: false, reported_by: "command" } },
  ]);
  expect(existsSync(log.path)).toBe(false);
  expect(() => sink.recordStart(id, { ...sampleStart(), execution_id: "x", owner })).toThrow(/has ended/);
});

test("records a start during the run, and ends a command without an end as interrupted", async () => {
  const { events, log } = openLog();
  appendFileSync(log.path, line({ id, start: sampleStart() }));
  await expect.poll(() => types(events), { timeout: 20_000 }).toEqual(["execution_started"]);
  await log.close();
  expect(events[1]).toMatchObject({ execution: { interrupted: true, exit_code: null, reported_by: "command" } });
});

describe("lines that no nested exec writes", () => {
  const forged: Record<string, unknown> = {
    "an id of another execution": { id: "run.1.other/../x", start: sampleStart() },
    "an id that is a number": { id: 7, start: sampleStart() },
    "an id that is too long": { id: "a".repeat(65), start: sampleStart() },
    "an end without a start": { id, end: sampleEnd() },
    "a start and an end in one": { id, start: sampleStart(), end: sampleEnd() },
    "an array": [id, sampleStart()],
    "a command that is not a string": { id, start: sampleStart({ command: { toString: "x" } }) },
    "argv with a number in it": { id, start: sampleStart({ argv: ["a", 1] }) },
    "an empty argv": { id, start: sampleStart({ argv: [] }) },
    "an invalid time": { id, start: sampleStart({ started_at: "yesterday" }) },
    "limits that are not numbers": { id, start: sampleStart({ limits: { disk_bytes: "all" } }) },
    "an unknown environment mode": {
      id,
      start: sampleStart({ environment: { mode: "all", given: [], withheld: [] } }),
    },
    "a correlation id of a megabyte": { id, start: sampleStart({ correlation: { task_id: "x".repeat(1000) } }) },
    null: null,
  };
  test.each(Object.entries(forged))("refuses %s with an error event", async (_, value) => {
    expect(types(await recordText(line(value)))).toEqual(["nested_log_invalid"]);
  });

  test.each(["garbage\n", "{\n", "\0\0\0\n", "no end of line", `{"id":"${id}"`, `${"[".repeat(60_000)}\n`])(
    "refuses garbage %#",
    async (text) => {
      expect(types(await recordText(text))).toEqual(["nested_log_invalid"]);
    },
  );

  const wrongEnds: object[] = [
    { exit_code: -1 },
    { exit_code: 256 },
    { exit_code: "0" },
    { signal: "kill -9" },
    { isolation: "total" },
    { stopped: "by <script>" },
    { success: "yes" },
    { resources: {} },
    { error: "none" },
    { stdout_bytes: -5 },
  ];
  test.each(wrongEnds)("ignores an end with %o, so that the command counts as interrupted", async (wrong) => {
    const events = await recordText(line({ id, start: sampleStart() }) + line({ id, end: sampleEnd(wrong) }));
    expect(types(events)).toEqual(["execution_started", "execution_ended", "nested_log_invalid"]);
    expect(events[1]).toMatchObject({ execution: { interrupted: true } });
  });

  test("ignores fields in a line that only Drover may set", async () => {
    const reservedFields = {
      owner: { pid: 666, start: "", host: "" },
      execution_id: "other",
      reported_by: null,
      extra: 1,
    };
    const [event] = await recordText(line({ id, ...reservedFields, start: sampleStart(reservedFields) }));
    expect(event).toMatchObject({ execution: { execution_id: `run.2.${id}`, owner, reported_by: "command" } });
    expect(JSON.stringify(event)).not.toContain("extra");
  });

  test("clamps times to the run, and does not record a failed command as a success", async () => {
    const from = Date.now();
    const [start, end] = await recordText(
      line({ id, start: sampleStart({ started_at: "2001-01-01T00:00:00Z" }) }) +
        line({ id, end: sampleEnd({ ended_at: "2999-01-01T00:00:00Z", duration_ms: 1e12, exit_code: 1 }) }),
    );
    const at = (event: RunEvent | undefined) =>
      event?.type === "execution_started" ? event.execution.started_at : (event as never)["execution"]["ended_at"];
    expect(Date.parse(at(start))).toBeGreaterThanOrEqual(from - 1000);
    expect(Date.parse(at(end))).toBeLessThanOrEqual(Date.now());
    expect(end).toMatchObject({ execution: { success: false } });
  });

  test("records a repeated start or end once", async () => {
    const twice = line({ id, start: sampleStart() }).repeat(2) + line({ id, end: sampleEnd() }).repeat(2);
    expect(types(await recordText(twice))).toEqual(["execution_started", "execution_ended", "nested_log_invalid"]);
  });
});

describe("never opens a replacement that a run creates for its log", () => {
  const replacements: Record<string, (path: string) => void> = {
    "a pipe": (path) => void spawnSync("mkfifo", [path]),
    "a link to a file of the host": (path) => symlinkSync("/etc/passwd", path),
    "a link to nowhere": (path) => symlinkSync("/nowhere", path),
    "a directory": (path) => void mkdirSync(path, { recursive: true }),
    "another file": (path) => writeFileSync(path, line({ id, start: sampleStart() })),
    nothing: () => undefined,
  };
  test.each(Object.entries(replacements))("%s", async (name, put) => {
    const { events, log, options } = openLog();
    unlinkSync(log.path);
    put(log.path);
    await log.close();
    expect(events).toEqual([]);
    mkdirSync(dirname(log.path), { recursive: true });
    if (name !== "another file") put(log.path);
    const recordedExecutions = new Map();
    expect((await recoverNested({ ...options, recorded: recordedExecutions }, "the runner died")).size).toBe(0);
    if (name !== "another file")
      expect(() => openNestedSink(log.path).recordStart(id, { ...sampleStart(), execution_id: "x", owner })).toThrow(
        /cannot be recorded/,
      );
  });
});

test.each(["true", "mkdir -p a/b && touch a/b/c", "mkfifo p; ln -s / l", "mkdir a && chmod 0 a", "rm -f run.2"])(
  "removes the log's directory after `%s`",
  async (script) => {
    const { log, options } = openLog();
    spawnSync("sh", ["-c", script], { cwd: dirname(log.path) });
    await log.close();
    expect(readdirSync(join(options.runsDirectory, "nested"))).toEqual([]);
  },
);

describe("a run that writes too much", () => {
  const full = (events: RunEvent[]) => types(events).filter((type) => type === "nested_log_full");

  test("reads a sparse file of a terabyte, a line of 10 MB and a million lines up to a limit, and reports that once", async () => {
    const { events, log } = openLog();
    truncateSync(log.path, 1024 ** 4);
    expect(statSync(log.path).size).toBe(1024 ** 4);
    await log.close();
    expect(full(events)).toHaveLength(1);
    expect(full(await recordText("x".repeat(10 * 1024 * 1024)))).toHaveLength(1);
    expect(full(await recordText("{}\n".repeat(1_000_000)))).toHaveLength(1);
  });

  test("ignores executions beyond the limit of an attempt, and records the ends of the others", async () => {
    const text = Array.from({ length: 2100 }, (_, n) => line({ id: `nested-${1000 + n}`, start: sampleStart() })).join(
      "",
    );
    const recordedTypes = types(await recordText(text));
    expect(recordedTypes.filter((type) => type === "execution_started")).toHaveLength(2000);
    expect(recordedTypes.filter((type) => type === "execution_ended")).toHaveLength(2000);
    expect(recordedTypes).toContain("nested_log_full");
  });
});

test("shortens the report of a command line of a megabyte", async () => {
  const { events, log } = openLog();
  const long = sampleStart({ command: "x".repeat(1024 * 1024), argv: ["echo", "y".repeat(1024 * 1024)] });
  openNestedSink(log.path).recordStart(id, { ...long, execution_id: "x", owner });
  await log.close();
  expect(types(events)).toEqual(["execution_started", "execution_ended"]);
  expect(JSON.stringify(events[0]).length).toBeLessThan(64 * 1024);
});

test("recovers the reports that a killed Drover process did not read, each once, and adds the ends of known starts", async () => {
  const { options } = openLog();
  const events: RunEvent[] = [];
  const record = (event: RunEvent): void => void events.push(event);
  const path = join(options.runsDirectory, "nested", "run.2", "run.2");
  const [a, b, c] = ["known-ended", "known-open", "never-read"];
  appendFileSync(
    path,
    [a, b, c]
      .map((nestedId) => line({ id: nestedId, start: sampleStart() }) + line({ id: nestedId, end: sampleEnd() }))
      .join(""),
  );
  appendFileSync(path, line({ id: "unfinished", start: sampleStart() }));
  const recordedExecutions = new Map([
    [`run.2.${a}`, "ended"],
    [`run.2.${b}`, "open"],
    ["run.1.foreign", "open"],
  ] as const);
  const ids = await recoverNested({ ...options, record, recorded: recordedExecutions }, "the runner died");
  const recordedTypes = events.map((event) =>
    "execution" in event
      ? [event.type, event.execution.execution_id, "interrupted" in event.execution && event.execution.interrupted]
      : event,
  );
  expect(recordedTypes).toEqual([
    ["execution_ended", `run.2.${b}`, false],
    ["execution_started", `run.2.${c}`, false],
    ["execution_ended", `run.2.${c}`, false],
    ["execution_started", "run.2.unfinished", false],
    ["execution_ended", "run.2.unfinished", true],
  ]);
  expect(ids.has("run.1.foreign")).toBe(false);
  expect(existsSync(path)).toBe(false);
});
