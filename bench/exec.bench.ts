import { spawn, spawnSync } from "node:child_process";
import {
  closeSync,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { createRequire } from "node:module";
import { cpus, release, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { execOnRecord, type ExecDeps, type ExecRequest } from "../src/execute/exec.ts";
import { createLocalIds } from "../src/local.ts";
import { newRun, noCorrelation } from "../src/model/new-run.ts";
import type { CaptureOptions, StartOptions } from "../src/model/process.ts";
import { createExecute } from "../src/process/execute.ts";
import { createStart } from "../src/process/start.ts";
import { getCurrentOwner } from "../src/record/audit/owner.ts";
import { openStore } from "../src/record/open.ts";
import { createRedactor } from "../src/redact/redactor.ts";
import { benchHide, startOnce, startOnceRole } from "./exec/hide.ts";
import { isRequested } from "./run-bench.ts";
import {
  formatAdded,
  computeDifference,
  interleave,
  median,
  formatMs,
  printTable,
  computeRatio,
  formatTimes,
  type Variant,
} from "./rounds.ts";

const benchDirectory = process.argv[2] ?? "";
const root = dirname(benchDirectory);
const peers = createRequire(join(benchDirectory, "package.json"));
const load = (name: string): Promise<unknown> => import(pathToFileURL(peers.resolve(name)).href);

const capture: CaptureOptions = { mode: "both", maxBytes: 1 << 20, onLimit: "truncate" };
const redactor = createRedactor({ variables: process.env, values: createSecrets() });

async function main(): Promise<void> {
  if (process.argv[3] === startOnceRole) return startOnce(process.argv[4]);
  const state = mkdtempSync(join(tmpdir(), "drover-bench-"));
  try {
    process.stdout.write(`Node ${process.version}, Linux ${release()}, ${cpus().length} x ${cpus()[0]?.model}\n`);
    const hide = (): Promise<void> => benchHide(state, join(root, "bin", "drover.js"), capture);
    const parts = { spawn: benchSpawn, hide, capture: benchCapture, audit: benchAudit, cold: benchCold, run: benchRun };
    for (const [name, part] of Object.entries(parts)) if (isRequested(name)) await part(state);
  } finally {
    rmSync(state, { recursive: true, force: true });
  }
}

async function benchSpawn(state: string): Promise<void> {
  const execute = createExecute(createStart());
  const withPerl = createExecute(createStart({ launchMethods: ["perl"] }));
  const run = (how: typeof execute, isolation: NonNullable<StartOptions["isolation"]>) => async () => {
    const { success } = await how({ executable: "/bin/true" }, { isolation, capture });
    if (!success) throw new Error(`${isolation} failed`);
  };
  const store = await openStore({ directory: join(state, "spawn"), now: () => new Date(), createIfMissing: true });
  const { execa } = (await load("execa")) as { execa: (file: string) => Promise<unknown> };
  const { x } = (await load("tinyexec")) as { x: (file: string) => Promise<unknown> };
  const nanoSpawn = ((await load("nano-spawn")) as { default: (file: string) => Promise<unknown> }).default;
  const variants: Variant[] = [
    { name: "raw", once: rawSpawn },
    { name: "none", once: run(execute, "none") },
    { name: "group", once: run(execute, "group") },
    { name: "pid", once: run(execute, "pid") },
    { name: "perl", once: run(withPerl, "pid") },
    { name: "audited", once: () => executeOnRecord(store) },
    { name: "execa", once: async () => void (await execa("/bin/true")) },
    { name: "tinyexec", once: async () => void (await x("/bin/true")) },
    { name: "nano-spawn", once: async () => void (await nanoSpawn("/bin/true")) },
  ];
  const result = await interleave(variants, 9, 60);
  await store.close();
  const row = (name: string, label: string, goal: string, shown: string): string[] => [
    label,
    formatMs(median(result.get(name)!)),
    shown,
    goal,
  ];
  printTable(
    "Process: /bin/true, spawn to result, stdout and stderr captured",
    ["what", "median", "against raw spawn", "goal"],
    [
      row("raw", "raw spawn, pipes", "", "1x"),
      row("none", "execute, isolation none", "<= 1.05x", formatTimes(computeRatio(result, "none", "raw"))),
      row("group", "execute, isolation group", "", formatAdded(computeDifference(result, "group", "raw"))),
      row(
        "pid",
        "execute, PID namespace, static launcher",
        "+ <= 1 ms",
        formatAdded(computeDifference(result, "pid", "raw")),
      ),
      row(
        "perl",
        "execute, PID namespace, perl launcher",
        "+ <= 3.5 ms",
        formatAdded(computeDifference(result, "perl", "raw")),
      ),
      row(
        "audited",
        "on the record, PID namespace, two durable commits",
        "",
        formatAdded(computeDifference(result, "audited", "raw")),
      ),
      row("tinyexec", "tinyexec 1.3.1", "", formatTimes(computeRatio(result, "tinyexec", "raw"))),
      row("nano-spawn", "nano-spawn 2.1.0", "", formatTimes(computeRatio(result, "nano-spawn", "raw"))),
      row("execa", "execa 9.6.0", "", formatTimes(computeRatio(result, "execa", "raw"))),
    ],
  );
  printTable(
    "Against execa 9",
    ["what", "execa takes", "goal"],
    [
      ["execute, isolation none", formatTimes(computeRatio(result, "execa", "none")), ">= 1.7x"],
      ["execute, PID namespace", formatTimes(computeRatio(result, "execa", "pid")), ""],
    ],
  );
}

async function benchCapture(state: string): Promise<void> {
  const text = join(state, "text");
  writeFileSync(
    text,
    "2026-01-31T10:00:00Z INFO compiled src/module.ts in 12 ms, 3 warnings, hash 4f1c9a\n"
      .repeat(1_300_000)
      .slice(0, 100 << 20),
  );
  const command = { executable: "/bin/cat", arguments: [text] };
  const execute = createExecute(createStart());
  const capped = async () => {
    const { stdout } = await execute(command, { isolation: "none", capture });
    if (stdout.totalBytes !== 100 << 20) throw new Error(`captured ${stdout.totalBytes}`);
  };
  const store = await openStore({ directory: join(state, "capture"), now: () => new Date(), createIfMissing: true });
  const result = await interleave(
    [
      { name: "discard", once: () => readAndDiscard(command.executable, command.arguments) },
      { name: "off", once: capped },
      { name: "on", once: () => executeOnRecord(store, { ...command, workingDirectory: "/" }, { isolation: "none" }) },
      { name: "whole", once: redactWhole(command) },
    ],
    7,
    3,
  );
  await store.close();
  const row = (name: string, label: string, goal: string): string[] => [
    label,
    formatMs(median(result.get(name)!)),
    formatTimes(computeRatio(result, name, "discard")),
    goal,
  ];
  printTable(
    "Capture: 100 MB of log lines, 1 MB kept",
    ["what", "median", "against read and discard", "goal"],
    [
      row("discard", "read and discard", "1x"),
      row("off", "execute, redaction off", "<= 1.1x"),
      row("on", "on the record, redaction on", "<= 2x"),
      row("whole", "all 100 MB through the redactor (what --spill costs, without the disk)", ""),
    ],
  );
}

async function benchAudit(state: string): Promise<void> {
  const store = await openStore({ directory: join(state, "audit"), now: () => new Date(), createIfMissing: true });
  const line = Buffer.from(
    `${JSON.stringify({ type: "execution_started", execution_id: "x".repeat(36), command: "true", at: new Date() }).padEnd(700)}\n`,
  );
  const file = openSync(join(state, "plain.log"), "a");
  const newId = createLocalIds();
  const at = new Date().toISOString();
  const append = createAuditAppender(store, newId, at);
  await append();
  const result = await interleave(
    [
      {
        name: "plain",
        once: () => {
          writeSync(file, line);
          fdatasyncSync(file);
        },
      },
      { name: "audit", once: append },
    ],
    9,
    200,
  );
  closeSync(file);
  await store.close();
  printTable(
    "One durable audit row, sealed",
    ["what", "median", "against append + fdatasync", "goal"],
    [
      ["append 700 bytes + fdatasync", formatMs(median(result.get("plain")!)), "1x", ""],
      [
        "one audit event, row and seal in one commit",
        formatMs(median(result.get("audit")!)),
        formatTimes(computeRatio(result, "audit", "plain")),
        "<= 1.6x",
      ],
    ],
  );
}

async function benchCold(state: string): Promise<void> {
  const empty = join(state, "empty.js");
  writeFileSync(empty, "");
  const env = { PATH: process.env["PATH"], HOME: state, DROVER_STATE_DIR: join(state, "cold") };
  const node =
    (...args: string[]) =>
    () => {
      const { status, stderr } = spawnSync(process.execPath, args, { env, cwd: state });
      if (status !== 0) throw new Error(stderr.toString("utf8"));
    };
  const drover = join(root, "bin", "drover.js");
  const result = await interleave(
    [
      { name: "empty", once: node(empty) },
      { name: "exec", once: node(drover, "exec", "true") },
      { name: "none", once: node(drover, "exec", "true", "--isolation", "none") },
      { name: "version", once: node(drover, "--version") },
    ],
    9,
    15,
  );
  const row = (name: string, label: string, goal: string): string[] => [
    label,
    formatMs(median(result.get(name)!)),
    formatTimes(computeRatio(result, name, "empty")),
    goal,
  ];
  printTable(
    "Command line, cold",
    ["what", "median", "against empty node", "goal"],
    [
      row("empty", "node with an empty script", "1x"),
      row("exec", "drover exec true: audited, PID namespace", "<= 1.5x"),
      row("none", "the same, isolation none", ""),
      row("version", "drover --version", ""),
    ],
  );
}

/** Compares the bundled agent echo with `drover exec` of its script: the same program on the same record. */
async function benchRun(state: string): Promise<void> {
  const env = { PATH: process.env["PATH"], HOME: state, DROVER_STATE_DIR: join(state, "run") };
  const drover =
    (...args: string[]) =>
    () => {
      const command = [join(root, "bin", "drover.js"), ...args, "--message", "hi"];
      const { status, stderr } = spawnSync(process.execPath, command, { env, cwd: state });
      if (status !== 0) throw new Error(stderr.toString("utf8"));
    };
  const variants = [
    { name: "exec", once: drover("exec", "--", join(root, "bundled", "scripts", "echo", "echo")) },
    { name: "run", once: drover("run", "echo") },
  ];
  const [wall, cpu] = [await interleave(variants, 9, 5), await interleave(variants, 9, 5, readChildCpuMs)];
  const row = (name: string, label: string, goal: string): string[] => [
    label,
    formatMs(median(wall.get(name)!)),
    formatTimes(computeRatio(wall, name, "exec")),
    formatMs(median(cpu.get(name)!)),
    formatTimes(computeRatio(cpu, name, "exec")),
    goal,
  ];
  printTable(
    "A run without a coordinator, cold",
    ["what", "median", "against exec", "CPU time", "against exec", "goal"],
    [row("exec", "drover exec of echo's script", "1x"), row("run", "drover run echo", "<= 1.5x")],
  );
}

/** CPU time of all reaped children and their reaped descendants. */
function readChildCpuMs(): number {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]!.split(" ");
  // cutime and cstime, in ticks of 10 ms.
  return (Number(fields[13]) + Number(fields[14])) * 10;
}

async function executeOnRecord(
  store: NonNullable<ExecDeps["store"]>,
  command: ExecRequest["command"] = { executable: "/bin/true", workingDirectory: "/" },
  options: StartOptions = {},
): Promise<void> {
  const request: ExecRequest = {
    command,
    display: command.executable,
    options: { stdin: "none", ...options },
    capture: { ...capture },
    spillDirectory: null,
    parentRunId: null,
    correlation: noCorrelation,
  };
  const { result } = await execOnRecord(
    request,
    { store, redactor, now: () => new Date(), newId: ids, owner, createdBy: "bench" },
    new AbortController().signal,
  );
  if (!result.success) throw new Error(JSON.stringify(result.error));
}
const ids = createLocalIds();
const owner = getCurrentOwner();

function rawSpawn(): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/true", [], { stdio: ["ignore", "pipe", "pipe"] });
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.once("error", reject);
    child.once("close", () => resolve());
  });
}

function readAndDiscard(file: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.on("data", () => undefined);
    child.stderr.on("data", () => undefined);
    child.once("error", reject);
    child.once("close", () => resolve());
  });
}

function redactWhole(command: { executable: string; arguments: string[] }): () => Promise<void> {
  return async () => {
    const stream = redactor.stream();
    let bytes = 0;
    const child = spawn(command.executable, command.arguments, { stdio: ["ignore", "pipe", "ignore"] });
    child.stdout.on("data", (chunk: Buffer) => (bytes += stream.push(chunk).length));
    await new Promise((resolve) => void child.once("close", resolve));
    bytes += stream.end().length;
    if (bytes < 100 << 20) throw new Error(`redacted ${bytes}`);
  };
}

/** Creates a run. Each call appends one execution_started to it. */
function createAuditAppender(
  store: Awaited<ReturnType<typeof openStore>>,
  newId: () => string,
  at: string,
): () => Promise<void> {
  const run_id = newId();
  let n = 0;
  const started = () => ({
    n: ++n,
    at,
    event: {
      type: "execution_started" as const,
      execution: {
        execution_id: newId(),
        command: "true",
        argv: ["true"],
        working_directory: "/",
        started_at: at,
        timeout_ms: 300_000,
        owner,
        correlation: noCorrelation,
      },
    },
  });
  let created = false;
  return async () => {
    if (!created) {
      created = true;
      await store.apply([
        {
          op: "create_run",
          run: newRun({
            run_id,
            agent_name: "exec",
            created_by: "bench",
            status: "running",
            attempt: 1,
            created_at: at,
          }),
          events: [],
        },
      ]);
      return;
    }
    const [saved] = await store.apply([{ op: "append_events", run_id, attempt: 1, events: [started()] }]);
    if (!saved.ok) throw new Error(saved.conflict);
  };
}

function createSecrets(): { name: string; value: string }[] {
  return Array.from({ length: 10 }, (_, index) => ({
    name: `BENCH_${index}`,
    value: `s3cr3t-value-number-${index}-of-ten`,
  }));
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
});
