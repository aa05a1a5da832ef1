import { constants, homedir, tmpdir } from "node:os";
import { createProceduralExecutor } from "./execute/executors/procedural/procedural.ts";
import { write } from "./cli/io.ts";
import { readLines } from "./execute/executors/read-lines.ts";
import { createLazySchemas } from "./compose/lazy-schemas.ts";
import type { RunEvent } from "./model/event.ts";
import type { Invocation, Outcome, RunContext } from "./model/executor.ts";
import { toResultEvent } from "./model/outcome.ts";
import type { ProcessEnd } from "./model/process.ts";
import { stopReasons } from "./model/states.ts";
import { start } from "./process/start.ts";
import { createRedactor } from "./redact/redactor.ts";

/**
 * Runs the procedural executor as a separate program with the protocol of `command` executors: it reads the invocation
 * from the first line of stdin, writes events to stdout, and exits with the command's exit code.
 */
export async function main(): Promise<void> {
  // If the runner has exited, nothing reads the events, but the command still runs to its end.
  process.stdout.on("error", () => undefined);
  const controller = new AbortController();
  process.once("SIGTERM", () => controller.abort("user"));
  process.once("SIGINT", () => controller.abort("user"));
  const lines = readLines(process.stdin, 16 * 1024 * 1024);
  const firstLine = await lines.next();
  const invocation = firstLine.done ? "stdin ended before the invocation" : parseInvocation(firstLine.value.text);
  if (typeof invocation === "string") {
    write(2, `drover-procedural-exec: ${invocation}. Write the invocation as JSON on the first line of stdin.\n`);
    process.exitCode = 125;
    return;
  }
  void watchForStop(lines, controller);
  const schemas = createLazySchemas();
  let commandEnd: ProcessEnd | null = null;
  const outcome = await createExecutor(schemas.check).run(
    invocation,
    createContext(invocation, controller.signal, (end) => (commandEnd = end)),
  );
  await print(toResultEvent(outcome));
  await schemas.stop();
  process.exit(toExitCode(outcome, commandEnd));
}

const findRunnerDirectory = (): string => process.env["DROVER_RUNNER_DIRECTORY"] ?? process.cwd();

function createExecutor(checkOutput: ReturnType<typeof createLazySchemas>["check"]) {
  return createProceduralExecutor({
    runnerDirectory: findRunnerDirectory(),
    // The runner has already expanded the allowed variables.
    variables: { allowed: [], env: process.env },
    redactor: createRedactor({ variables: process.env }),
    maxOutputBytes: 1024 * 1024,
    checkOutput,
  });
}

/** Checks only the fields that the executor reads, so that a newer coordinator can add others. Returns a problem if one is invalid. */
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
    return { mode: "start", ...value, parameters, agent: { list_style: "comma", ...agent } } as Invocation; // The fields in use are checked above.
  } catch (error) {
    if (error instanceof SyntaxError) return "the invocation is not JSON";
    throw error;
  }
}

/** Aborts the run when stdin contains a stop message. */
async function watchForStop(lines: ReturnType<typeof readLines>, controller: AbortController): Promise<void> {
  for await (const { text } of lines) {
    const stop = /^\s*\{\s*"stop"\s*:\s*"([a-z_]+)"/.exec(text)?.[1];
    if (stop !== undefined) controller.abort(stopReasons.find((reason) => reason === stop) ?? "user");
  }
}

function createContext(
  { project_dir }: Invocation,
  signal: AbortSignal,
  onEnd: (commandEnd: ProcessEnd) => void,
): RunContext {
  return {
    signal,
    overBudget: new AbortController().signal,
    emit: print,
    partial: () => undefined,
    ask: () => Promise.resolve({ decision: "deny" }),
    input: { async *[Symbol.asyncIterator]() {} },
    async start(command) {
      // The runner has already built this environment for the command.
      const running = start(
        command,
        { environment: { mode: "inherit", allow: ["*"] }, stdin: "none", output: "both" },
        signal,
      );
      void running.result.then(onEnd);
      return running;
    },
    startHost: () => Promise.reject(new Error("a procedural run cannot start host processes")),
    usage: () => undefined,
    keepFiles: () => Promise.resolve({ ok: false, message: "A procedural run keeps no files." }),
    session: {
      load: () => Promise.resolve(null),
      save: () => Promise.reject(new Error("a procedural run has no session to save")),
    },
    dirs: { work: project_dir ?? process.cwd(), home: homedir(), tmp: tmpdir() },
    runnerDirectory: findRunnerDirectory(),
  };
}

/** Waits until the event is written, so that a slow reader applies backpressure. */
async function print(event: RunEvent): Promise<void> {
  await new Promise<void>((resolve) => process.stdout.write(`${JSON.stringify(event)}\n`, () => resolve()));
}

function toExitCode(outcome: Outcome, commandEnd: ProcessEnd | null): number {
  if (commandEnd?.exitCode !== null && commandEnd?.exitCode !== undefined) return commandEnd.exitCode;
  if (commandEnd?.stopped === "timeout") return 124;
  if (commandEnd?.signal) return 128 + (Reflect.get(constants.signals, commandEnd.signal) as number);
  if (outcome.status === "failed" && outcome.reason === "command_not_found") return 127;
  if (commandEnd?.error?.code === "DROVER-EXE-005") return 126;
  return outcome.status === "failed" && outcome.reason === "refused" ? 2 : 125;
}
