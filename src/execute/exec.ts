import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Correlation, ExecutionEnd, ExecutionStart } from "../model/execution.ts";
import type { NewId } from "../model/ids.ts";
import { newRun } from "../model/new-run.ts";
import { getDisplayBytes } from "../model/output.ts";
import type { CaptureOptions, Command, CommandResult, Redactor, StartOptions } from "../model/process.ts";
import type { Store } from "../model/store.ts";
import { checkCommand } from "../process/check-command.ts";
import { execute } from "../process/execute.ts";
import { toFailureReason } from "./executions/failure-reason.ts";
import { buildExecutionEnd, buildExecutionStart, buildDroverVariables } from "./executions/execution-record.ts";
import { findNestedDirectories } from "./nested/nested-directories.ts";
import { openNestedLog } from "./nested/nested-log.ts";
import type { NestedSink } from "./nested/nested-sink.ts";
import { createRecorder } from "./journal/recorder.ts";
import { openStoreSink } from "./journal/store-sink.ts";

/** One recorded command: a run of the built-in agent `exec`. */
export interface ExecRequest {
  command: Command & { workingDirectory: string };
  /** The command line as a person typed it. */
  display: string;
  options: StartOptions;
  capture: CaptureOptions;
  /** Receives a copy of the complete output, redacted; null for none. */
  spillDirectory: string | null;
  /** The run that this one is part of. */
  parentRunId: string | null;
  correlation: Correlation;
  /** The root of the repository that `repo_sha` belongs to. */
  repoRoot?: string;
}

export interface ExecDeps {
  /** null if the operator turned the audit off. */
  store: Pick<Store, "apply"> | null;
  /** Set if this command is inside a run. The outer Drover records it, so there is no store. */
  nested?: NestedSink;
  /** For Drover commands inside this one; absent if nothing is recorded. */
  nestedAccess?: NestedAccess;
  redactor: Redactor;
  now: () => Date;
  newId: NewId;
  owner: ExecutionStart["owner"];
  createdBy: string;
  /** Called once the process runs, to use the time until it ends. Must not reject. */
  whileRunning?: () => Promise<void>;
  /**
   * Whether a person pressed Ctrl-C. The command got the signal too, so if it ends by SIGINT, the person stopped it.
   */
  wasInterrupted?: () => boolean;
}

/** How commands inside an `exec` reach this Drover process. */
export interface NestedAccess {
  runs: string;
  /** DROVER_API_URL and DROVER_API_KEY, or the variables that a nested exec inherited. */
  variables: Readonly<Record<string, string>>;
  /** Called when the run is recorded. Returns a function that is called when everything in the run has ended. */
  open(run_id: string): () => Promise<void>;
}

export interface ExecRecord {
  /** The run's id, or the execution's id if this command is part of another run. */
  runId: string;
  request: ExecRequest;
  result: CommandResult;
}

/** How long output is buffered, to join it into fewer events. */
const outputDelayMs = 50;

/** Runs a command and records it. The start is durable before the spawn, the end before this returns. */
export async function execOnRecord(request: ExecRequest, deps: ExecDeps, signal: AbortSignal): Promise<ExecRecord> {
  checkCommand(request.command);
  const id = deps.newId();
  const runId = deps.nested?.executionId(id) ?? id;
  const record = deps.nested
    ? startNested(id, request, deps, deps.nested)
    : deps.store && (await startRecord(runId, request, deps, deps.store));
  const nestedVariables = {
    ...deps.nestedAccess?.variables,
    ...(record?.log ? { DROVER_NESTED_LOG: record.log } : {}),
  };
  const running = execute(
    request.command,
    {
      ...request.options,
      show: [...(request.options.show ?? []), ...findNestedDirectories(nestedVariables)],
      ...(record?.log ? { writable: [...(request.options.writable ?? []), record.log] } : {}),
      ids: {
        ...buildDroverVariables(deps.nested?.runId ?? runId, request.correlation, request.repoRoot),
        ...nestedVariables,
        DROVER_EXECUTION_ID: runId,
      },
      capture: {
        ...request.capture,
        ...spillFiles(runId, request),
        redactor: deps.redactor,
        onOutput(stream, chunk) {
          // In mode `file`, output goes to the spill files only.
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

/** Records the command in the outer run. Its output is already part of that run's output. */
function startNested(id: string, request: ExecRequest, deps: ExecDeps, sink: NestedSink) {
  const { redactor } = deps;
  sink.recordStart(id, redactor.value(toExecutionStart(id, request, deps)));
  return {
    log: null,
    output: () => undefined,
    async finish(result: CommandResult): Promise<void> {
      sink.recordEnd(id, redactor.value(toExecutionEnd(id, result)));
    },
  };
}

function toExecutionStart(execution_id: string, request: ExecRequest, deps: ExecDeps): ExecutionStart {
  return buildExecutionStart({
    execution_id,
    command: request.command,
    display: request.display,
    options: request.options,
    timeoutMs: null,
    now: deps.now(),
    owner: deps.owner,
    correlation: request.correlation,
  });
}

function toExecutionEnd(execution_id: string, result: CommandResult): ExecutionEnd {
  return buildExecutionEnd(execution_id, result, {
    stdoutBytes: result.stdout.totalBytes,
    stderrBytes: result.stderr.totalBytes,
    truncated: result.stdout.truncated || result.stderr.truncated,
  });
}

async function startRecord(runId: string, request: ExecRequest, deps: ExecDeps, store: Pick<Store, "apply">) {
  const { redactor } = deps;
  const sink = openStoreSink(runId, store, deps.now);
  const stdout: string[] = [];
  const recorder = createRecorder({
    sink(event) {
      if (event.type === "output" && event.stream === "stdout") stdout.push(getDisplayBytes(event).toString("utf8"));
      sink.append(event);
    },
    redactor,
    outputDelayMs,
    maxOutputBytes: request.capture.maxBytes,
  });
  recorder.record({ type: "status", status: "running" });
  // The run and its one execution share an id.
  const start = recorder.recordStart(toExecutionStart(runId, request, deps));
  const { nestedAccess, now, owner } = deps;
  const log =
    nestedAccess &&
    openNestedLog({ runsDirectory: nestedAccess.runs, run_id: runId, attempt: 1, owner, now, record: recorder.record });
  await sink
    .create(
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
    )
    .catch(async (error: unknown) => {
      await log?.close();
      throw error;
    });
  const close = nestedAccess?.open(runId);
  return {
    log: log?.path ?? null,
    output: recorder.output,
    async finish(result: CommandResult): Promise<void> {
      await close?.();
      await log?.close();
      recorder.recordEnd(toExecutionEnd(runId, result));
      const cancelled = result.stopped === "user" || result.stopped === "shutdown";
      await sink.finish({
        at: result.endTime.toISOString(),
        result: {
          type: "result",
          status: result.success ? "completed" : cancelled ? "cancelled" : "failed",
          reason: result.success || cancelled ? null : toFailureReason(result),
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
