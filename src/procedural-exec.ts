import { constants, homedir, tmpdir } from "node:os";
import { createProceduralExecutor } from "./execute/executors/procedural/procedural.ts";
import { write } from "./cli/io.ts";
import { readLines } from "./execute/executors/read-lines.ts";
import { lazySchemas } from "./compose/lazy-schemas.ts";
import type { RunEvent } from "./model/event.ts";
import type { Invocation, Outcome, RunContext } from "./model/executor.ts";
import { toResultEvent } from "./model/outcome.ts";
import type { Ended } from "./model/process.ts";
import { stopReasons } from "./model/states.ts";
import { start } from "./process/start.ts";
import { createRedactor } from "./redact/redactor.ts";

/**
 * The procedural executor as a program of its own, in the shape of any `command` executor: an invocation on
 * the first line of stdin, events on stdout, and the command's own exit code.
 */
export async function main(): Promise<void> {
  // a runner that is gone reads no more events; the command ends as it would have
  process.stdout.on("error", () => undefined);
  const controller = new AbortController();
  process.once("SIGTERM", () => controller.abort("user"));
  process.once("SIGINT", () => controller.abort("user"));
  const lines = readLines(process.stdin, 16 * 1024 * 1024);
  const first = await lines.next();
  const invocation = first.done ? "stdin ended before an invocation came" : parseInvocation(first.value.text);
  if (typeof invocation === "string") {
    write(2, `drover-procedural-exec: ${invocation}. Its first line of stdin must be the invocation as JSON.\n`);
    process.exitCode = 125;
    return;
  }
  void obey(lines, controller);
  const schemas = lazySchemas();
  let ended: Ended | null = null;
  const outcome = await executor(schemas.check).run(
    invocation,
    contextOf(invocation, controller.signal, (end) => (ended = end)),
  );
  await print(toResultEvent(outcome));
  await schemas.stop();
  process.exit(exitCodeOf(outcome, ended));
}

const runnerDirectory = (): string => process.env["DROVER_RUNNER_DIRECTORY"] ?? process.cwd();

function executor(checkOutput: ReturnType<typeof lazySchemas>["check"]) {
  return createProceduralExecutor({
    runnerDirectory: runnerDirectory(),
    // the runner has expanded everything it allows
    variables: { allowed: [], env: process.env },
    redactor: createRedactor({ variables: process.env }),
    maxOutputBytes: 1024 * 1024,
    checkOutput,
  });
}

/** Only what the executor reads is looked at: the rest is the coordinator's, and may grow. */
function parseInvocation(text: string): Invocation | string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null) return "the invocation is not an object";
    if (Reflect.get(value, "schema_version") !== 1) return "the invocation's schema_version is not 1";
    const agent: unknown = Reflect.get(value, "agent");
    if (typeof agent !== "object" || agent === null) return "the invocation has no agent";
    const parameters: unknown = Reflect.get(value, "parameters") ?? {};
    if (typeof parameters !== "object" || Array.isArray(parameters))
      return "the invocation's parameters are not an object";
    return { mode: "start", ...value, parameters, agent: { list_style: "comma", ...agent } } as Invocation; // checked above, as far as it is used
  } catch (error) {
    if (error instanceof SyntaxError) return "the invocation is not JSON";
    throw error;
  }
}

async function obey(lines: ReturnType<typeof readLines>, controller: AbortController): Promise<void> {
  for await (const { text } of lines) {
    const stop = /^\s*\{\s*"stop"\s*:\s*"([a-z_]+)"/.exec(text)?.[1];
    if (stop !== undefined) controller.abort(stopReasons.find((reason) => reason === stop) ?? "user");
  }
}

function contextOf({ project_dir }: Invocation, signal: AbortSignal, onEnd: (ended: Ended) => void): RunContext {
  return {
    signal,
    overBudget: new AbortController().signal,
    emit: print,
    partial: () => undefined,
    ask: () => Promise.resolve({ decision: "deny" }),
    input: { async *[Symbol.asyncIterator]() {} },
    async start(command) {
      // this program's own environment was made for the command already
      const running = start(
        command,
        { environment: { mode: "inherit", allow: ["*"] }, stdin: "none", output: "both" },
        signal,
      );
      void running.result.then(onEnd);
      return running;
    },
    startHost: () => Promise.reject(new Error("a procedural run has no host")),
    usage: () => undefined,
    keepFiles: () => Promise.resolve({ ok: false, message: "A procedural run leaves no files." }),
    session: {
      load: () => Promise.resolve(null),
      save: () => Promise.reject(new Error("a procedural run has no session to save")),
    },
    dirs: { work: project_dir ?? process.cwd(), home: homedir(), tmp: tmpdir() },
    runnerDirectory: runnerDirectory(),
  };
}

/** Waits where the reader is slow. */
async function print(event: RunEvent): Promise<void> {
  await new Promise<void>((resolve) => process.stdout.write(`${JSON.stringify(event)}\n`, () => resolve()));
}

function exitCodeOf(outcome: Outcome, ended: Ended | null): number {
  if (ended?.exitCode !== null && ended?.exitCode !== undefined) return ended.exitCode;
  if (ended?.stopped === "timeout") return 124;
  if (ended?.signal) return 128 + (Reflect.get(constants.signals, ended.signal) as number);
  if (outcome.status === "failed" && outcome.reason === "command_not_found") return 127;
  if (ended?.error?.code === "DROVER-EXE-005") return 126;
  return outcome.status === "failed" && outcome.reason === "refused" ? 2 : 125;
}
