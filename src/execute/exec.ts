import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Correlation, ExecutionStart } from "../model/execution.ts";
import type { NewId } from "../model/ids.ts";
import { newRun } from "../model/new-run.ts";
import { shownBytes } from "../model/output.ts";
import type { CaptureOptions, Command, CommandResult, Redactor, StartOptions } from "../model/process.ts";
import type { Store } from "../model/store.ts";
import { checkCommand } from "../process/check.ts";
import { execute } from "../process/execute.ts";
import { endReason } from "./end-reason.ts";
import { executionEnd, executionStart, inheritedIds } from "./execution-record.ts";
import { createRecorder } from "./recorder.ts";
import { openStoreSink } from "./store-sink.ts";

/** One command on the record: a run of the built-in agent `exec`. */
export interface ExecRequest {
  command: Command & { workingDirectory: string };
  /** As a person typed it. */
  display: string;
  options: StartOptions;
  capture: CaptureOptions;
  /** Where the whole output goes as well, redacted; null for nowhere. */
  spillDirectory: string | null;
  /** The run this one is part of, and the caller's other ids. */
  parentRunId: string | null;
  correlation: Correlation;
  /** Of the repository that `repo_sha` is of. */
  repoRoot?: string;
}

export interface ExecDeps {
  /** null where the operator turned the audit off. */
  store: Pick<Store, "apply"> | null;
  redactor: Redactor;
  now: () => Date;
  newId: NewId;
  owner: ExecutionStart["owner"];
  createdBy: string;
  /** Called once the process runs: time that would otherwise be spent waiting. Must not reject. */
  whileRunning?: () => Promise<void>;
  /** Did the person at the terminal press Ctrl-C? The command has had it too: an end by it is theirs. */
  wasInterrupted?: () => boolean;
}

export interface ExecRecord {
  runId: string;
  request: ExecRequest;
  result: CommandResult;
}

/** How long output waits for more of it. */
const outputDelayMs = 50;

/** The start is durable before the spawn; the end is durable before this returns. */
export async function execOnRecord(request: ExecRequest, deps: ExecDeps, signal: AbortSignal): Promise<ExecRecord> {
  checkCommand(request.command);
  const runId = deps.newId();
  const record = deps.store && (await startRecord(runId, request, deps, deps.store));
  const running = execute(
    request.command,
    {
      ...request.options,
      ids: { ...inheritedIds(runId, request.correlation, request.repoRoot), DROVER_EXECUTION_ID: runId },
      capture: {
        ...request.capture,
        ...spillFiles(runId, request),
        redactor: deps.redactor,
        onOutput(stream, chunk) {
          // with `file` the spill files alone have it
          if (request.capture.mode !== "file") record?.output(stream, chunk);
          return request.capture.onOutput?.(stream, chunk);
        },
      },
    },
    signal,
  );
  const [result] = await Promise.all([running, deps.whileRunning?.()]);
  if (deps.wasInterrupted?.() && (result.signal === "SIGINT" || result.exitCode === 130)) result.stopped ??= "user";
  await record?.finish(result);
  return { runId, request, result };
}

function spillFiles(runId: string, { spillDirectory }: ExecRequest): Pick<CaptureOptions, "spill"> {
  if (!spillDirectory) return {};
  mkdirSync(spillDirectory, { recursive: true, mode: 0o700 });
  return {
    spill: { stdout: join(spillDirectory, `${runId}.stdout`), stderr: join(spillDirectory, `${runId}.stderr`) },
  };
}

async function startRecord(runId: string, request: ExecRequest, deps: ExecDeps, store: Pick<Store, "apply">) {
  const { redactor } = deps;
  const sink = openStoreSink(runId, store, deps.now);
  const stdout: string[] = [];
  const recorder = createRecorder({
    sink(event) {
      if (event.type === "output" && event.stream === "stdout") stdout.push(shownBytes(event).toString("utf8"));
      sink.append(event);
    },
    redactor,
    outputDelayMs,
    maxOutputBytes: request.capture.maxBytes,
  });
  recorder.record({ type: "status", status: "running" });
  const start = recorder.started(
    executionStart({
      // an exec is one run with one execution: one id names both
      execution_id: runId,
      command: request.command,
      display: request.display,
      options: request.options,
      timeoutMs: null,
      now: deps.now(),
      owner: deps.owner,
      correlation: request.correlation,
    }),
  );
  await sink.create(
    newRun({
      run_id: runId,
      agent_name: "exec",
      created_by: deps.createdBy,
      status: "running",
      parameters: { command: start.command, argv: start.argv },
      ...start.correlation,
      parent_run_id: request.parentRunId && redactor.text(request.parentRunId),
      project_dir: start.working_directory,
      attempt: 1,
      summary: start.command.slice(0, 500),
      created_at: start.started_at,
      claimed_at: start.started_at,
      started_at: start.started_at,
    }),
  );
  return {
    output: recorder.output,
    async finish(result: CommandResult): Promise<void> {
      recorder.ended(
        executionEnd(runId, result, {
          stdoutBytes: result.stdout.totalBytes,
          stderrBytes: result.stderr.totalBytes,
          truncated: result.stdout.truncated || result.stderr.truncated,
        }),
      );
      const cancelled = result.stopped === "user" || result.stopped === "shutdown";
      await sink.finish({
        at: result.endTime.toISOString(),
        result: {
          type: "result",
          status: result.success ? "completed" : cancelled ? "cancelled" : "failed",
          reason: result.success || cancelled ? null : endReason(result),
          error: result.error && redactor.text(result.error.message),
          exit_code: result.exitCode,
          result_text: stdout.join(""),
          result_data: null,
        },
        isolation: result.isolation,
      });
    },
  };
}
