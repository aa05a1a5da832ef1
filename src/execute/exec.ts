import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { NumberedEvent, RunEvent } from "../model/event.ts";
import type { Correlation, ExecutionEnd, ExecutionStart } from "../model/execution.ts";
import type { NewId } from "../model/ids.ts";
import type { CaptureOptions, Command, CommandResult, Redactor, StartOptions } from "../model/process.ts";
import type { Run } from "../model/run.ts";
import type { FailureReason } from "../model/states.ts";
import type { FinishRun, Store } from "../model/store.ts";
import { BugError } from "../model/errors.ts";
import { checkCommand } from "../process/check.ts";
import { execute } from "../process/execute.ts";
import { endReason } from "./end-reason.ts";
import { createOutputLog } from "./output-log.ts";

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

/** How often the record of a long command is brought up to date while it runs. */
const flushEveryMs = 500;

/** The start is durable before the spawn; the end is durable before this returns. */
export async function execOnRecord(request: ExecRequest, deps: ExecDeps, signal: AbortSignal): Promise<ExecRecord> {
  checkCommand(request.command);
  const runId = deps.newId();
  const journal = openJournal(runId, request, deps);
  await journal.start();
  const running = execute(
    request.command,
    {
      ...request.options,
      ids: childIds(runId, request),
      capture: {
        ...request.capture,
        ...spillFiles(runId, request),
        redactor: deps.redactor,
        onOutput(stream, chunk) {
          journal.output(stream, chunk);
          return request.capture.onOutput?.(stream, chunk);
        },
      },
    },
    signal,
  );
  const [result] = await Promise.all([running, deps.whileRunning?.()]);
  if (deps.wasInterrupted?.() && (result.signal === "SIGINT" || result.exitCode === 130)) result.stopped ??= "user";
  await journal.finish(result);
  return { runId, request, result };
}

function spillFiles(runId: string, { spillDirectory }: ExecRequest): Pick<CaptureOptions, "spill"> {
  if (!spillDirectory) return {};
  mkdirSync(spillDirectory, { recursive: true, mode: 0o700 });
  return {
    spill: { stdout: join(spillDirectory, `${runId}.stdout`), stderr: join(spillDirectory, `${runId}.stderr`) },
  };
}

function openJournal(runId: string, request: ExecRequest, deps: ExecDeps) {
  const { store, redactor } = deps;
  const log = createOutputLog({ maxBytes: request.capture.maxBytes, redactor });
  let n = 0;
  let unsaved: NumberedEvent[] = [];
  let timer: NodeJS.Timeout | null = null;
  let saving: Promise<void> = Promise.resolve();
  const number = (event: RunEvent): NumberedEvent => ({ n: ++n, at: deps.now().toISOString(), event });

  /** A failure here loses nothing: the events stay unsaved, and the finish brings them or fails loudly. */
  const flush = async (): Promise<void> => {
    unsaved.push(...log.take().map(number));
    if (unsaved.length === 0 || !store) return;
    const [saved] = await store.apply([{ op: "append_events", run_id: runId, attempt: 1, events: unsaved }]);
    if (saved.ok) unsaved = unsaved.filter((event) => event.n > saved.last_n);
  };

  return {
    async start(): Promise<void> {
      const started = startOf(runId, request, deps);
      const events = [
        number({ type: "status", status: "running" }),
        number({ type: "execution_started", execution: started }),
      ];
      if (!store) return;
      const [created] = await store.apply([{ op: "create_run", run: runOf(runId, request, deps, started), events }]);
      if (!created.ok) throw new BugError(`A new run could not be recorded: ${created.conflict}.`);
    },

    output(stream: "stdout" | "stderr", chunk: Uint8Array): void {
      // with `file` the spill files alone have it
      if (!store || request.capture.mode === "file") return;
      log.push(stream, chunk);
      timer ??= setTimeout(() => {
        timer = null;
        saving = saving.then(flush).catch(() => undefined);
      }, flushEveryMs);
    },

    async finish(result: CommandResult): Promise<void> {
      if (timer) clearTimeout(timer);
      await saving;
      if (!store) return;
      const { events: output, stdout } = log.finish();
      unsaved.push(
        ...output.map(number),
        number({ type: "execution_ended", execution: endOf(runId, result, redactor) }),
      );
      const finish = finishOf(runId, result, stdout, unsaved, redactor);
      const [finished] = await store.apply([finish]);
      if (!finished.ok) throw new BugError(`The end of run ${runId} could not be recorded: ${finished.conflict}.`);
    },
  };
}

/** Everything that came from outside is redacted here, before it is written anywhere. */
function startOf(runId: string, request: ExecRequest, deps: ExecDeps): ExecutionStart {
  const { command } = request;
  const given = deps.redactor.value({
    command: request.display,
    argv: [command.executable, ...(command.arguments ?? [])],
    working_directory: command.workingDirectory,
    correlation: request.correlation,
  });
  return {
    // an exec is one run with one execution: one id names both
    execution_id: runId,
    ...given,
    started_at: deps.now().toISOString(),
    timeout_ms: command.timeoutMs ?? null,
    owner: deps.owner,
  };
}

function endOf(runId: string, result: CommandResult, redactor: Redactor): ExecutionEnd {
  const { resources, error } = result;
  return {
    execution_id: runId,
    exit_code: result.exitCode,
    signal: result.signal,
    stopped: result.stopped,
    success: result.success,
    timed_out: result.timedOut,
    interrupted: false,
    ended_at: result.endTime.toISOString(),
    duration_ms: result.durationMs,
    isolation: result.isolation,
    leftovers: result.leftovers,
    resources: resources && {
      user_ms: resources.userMs,
      system_ms: resources.systemMs,
      max_rss_kb: resources.maxRssKb,
    },
    error: error && { code: error.code, message: redactor.text(error.message) },
    stdout_bytes: result.stdout.totalBytes,
    stderr_bytes: result.stderr.totalBytes,
    truncated: result.stdout.truncated || result.stderr.truncated,
  };
}

function runOf(runId: string, request: ExecRequest, deps: ExecDeps, start: ExecutionStart): Run {
  return {
    run_id: runId,
    agent_name: "exec",
    created_by: deps.createdBy,
    mode: "start",
    status: "running",
    reason: null,
    error: null,
    waiting_for: null,
    parameters: { command: start.command, argv: start.argv },
    prompt: null,
    attended: false,
    ...start.correlation,
    forked_from: null,
    parent_run_id: request.parentRunId && deps.redactor.text(request.parentRunId),
    retry_of: null,
    trigger_type: "manual",
    schedule: null,
    project_dir: start.working_directory,
    demands: {},
    priority: 0,
    attempt: 1,
    failures: 0,
    runner_id: null,
    progress: null,
    exit_code: null,
    result_text: null,
    result_data: null,
    summary: start.command.slice(0, 500),
    usage: null,
    isolation: null,
    created_at: start.started_at,
    claimed_at: start.started_at,
    started_at: start.started_at,
    finished_at: null,
  };
}

function finishOf(
  runId: string,
  result: CommandResult,
  stdout: string,
  events: NumberedEvent[],
  redactor: Redactor,
): FinishRun {
  const cancelled = result.stopped === "user" || result.stopped === "shutdown";
  return {
    op: "finish_run",
    run_id: runId,
    attempt: 1,
    at: result.endTime.toISOString(),
    events,
    result: {
      type: "result",
      status: result.success ? "completed" : cancelled ? "cancelled" : "failed",
      reason: result.success || cancelled ? null : failureReason(result),
      error: result.error && redactor.text(result.error.message),
      exit_code: result.exitCode,
      result_text: stdout,
      result_data: null,
    },
    isolation: result.isolation,
  };
}

function failureReason(result: CommandResult): FailureReason {
  return result.stopped === "timeout" ? "timeout" : endReason(result);
}

/** What a nested `exec` inherits: its parent run, and the ids it is part of. */
function childIds(runId: string, { correlation }: ExecRequest): Record<string, string> {
  const ids: Record<string, string> = { DROVER_RUN_ID: runId, DROVER_EXECUTION_ID: runId };
  for (const [key, value] of Object.entries(correlation)) {
    if (value !== null && key !== "repo_sha") ids[`DROVER_${key.toUpperCase()}`] = value;
  }
  return ids;
}
