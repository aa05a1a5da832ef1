import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Correlation, ExecutionEnd, ExecutionStart } from "../model/execution.ts";
import type { NewId } from "../model/ids.ts";
import { newRun } from "../model/new-run.ts";
import { shownBytes } from "../model/output.ts";
import type { CaptureOptions, Command, CommandResult, Redactor, StartOptions } from "../model/process.ts";
import type { Store } from "../model/store.ts";
import { checkCommand } from "../process/check.ts";
import { execute } from "../process/execute.ts";
import { failureReasonOf } from "./executions/failure-reason.ts";
import { executionEnd, executionStart, inheritedIds } from "./executions/execution-record.ts";
import { nestedDirectories } from "./nested/nested-directories.ts";
import { openNestedLog } from "./nested/nested-log.ts";
import type { NestedSink } from "./nested/nested-sink.ts";
import { createRecorder } from "./journal/recorder.ts";
import { openStoreSink } from "./journal/store-sink.ts";

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
  /** Where this command is itself inside a run: that run's Drover records it, and there is no store. */
  nested?: NestedSink;
  /** For Drover commands inside this one; none where nothing is recorded. */
  inside?: Inside;
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

/** How commands inside an `exec` reach this Drover. */
export interface Inside {
  runs: string;
  /** DROVER_API_URL and DROVER_API_KEY, or what a nested exec inherited and passes on. */
  variables: Readonly<Record<string, string>>;
  /** Called with the run once it is on the record; what it returns is called when everything in it has ended. */
  open(run_id: string): () => Promise<void>;
}

export interface ExecRecord {
  /** Of the run; where it is part of another one, of its execution there. */
  runId: string;
  request: ExecRequest;
  result: CommandResult;
}

/** How long output waits for more of it. */
const outputDelayMs = 50;

/** The start is durable before the spawn; the end is durable before this returns. */
export async function execOnRecord(request: ExecRequest, deps: ExecDeps, signal: AbortSignal): Promise<ExecRecord> {
  checkCommand(request.command);
  const id = deps.newId();
  const runId = deps.nested?.executionId(id) ?? id;
  const record = deps.nested
    ? startNested(id, request, deps, deps.nested)
    : deps.store && (await startRecord(runId, request, deps, deps.store));
  const reachedBy = { ...deps.inside?.variables, ...(record?.log ? { DROVER_NESTED_LOG: record.log } : {}) };
  const running = execute(
    request.command,
    {
      ...request.options,
      show: [...(request.options.show ?? []), ...nestedDirectories(reachedBy)],
      ...(record?.log ? { writable: [...(request.options.writable ?? []), record.log] } : {}),
      ids: {
        ...inheritedIds(deps.nested?.runId ?? runId, request.correlation, request.repoRoot),
        ...reachedBy,
        DROVER_EXECUTION_ID: runId,
      },
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

/** In the run that it is part of; what it writes is that run's output already. */
function startNested(id: string, request: ExecRequest, deps: ExecDeps, sink: NestedSink) {
  const { redactor } = deps;
  sink.started(id, redactor.value(startOf(id, request, deps)));
  return {
    log: null,
    output: () => undefined,
    async finish(result: CommandResult): Promise<void> {
      sink.ended(id, redactor.value(endOf(id, result)));
    },
  };
}

function startOf(execution_id: string, request: ExecRequest, deps: ExecDeps): ExecutionStart {
  return executionStart({
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

function endOf(execution_id: string, result: CommandResult): ExecutionEnd {
  return executionEnd(execution_id, result, {
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
      if (event.type === "output" && event.stream === "stdout") stdout.push(shownBytes(event).toString("utf8"));
      sink.append(event);
    },
    redactor,
    outputDelayMs,
    maxOutputBytes: request.capture.maxBytes,
  });
  recorder.record({ type: "status", status: "running" });
  // an exec is one run with one execution of its own: one id names both
  const start = recorder.started(startOf(runId, request, deps));
  const { inside, now, owner } = deps;
  const log =
    inside && openNestedLog({ runs: inside.runs, run_id: runId, attempt: 1, owner, now, record: recorder.record });
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
  const close = inside?.open(runId);
  return {
    log: log?.path ?? null,
    output: recorder.output,
    async finish(result: CommandResult): Promise<void> {
      await close?.();
      await log?.close();
      recorder.ended(endOf(runId, result));
      const cancelled = result.stopped === "user" || result.stopped === "shutdown";
      await sink.finish({
        at: result.endTime.toISOString(),
        result: {
          type: "result",
          status: result.success ? "completed" : cancelled ? "cancelled" : "failed",
          reason: result.success || cancelled ? null : failureReasonOf(result),
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
