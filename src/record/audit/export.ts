import type { ExecutionEnd, ExecutionStart } from "../../model/execution.ts";
import type { Execution } from "../../model/store.ts";
import type { Engine } from "../engine.ts";
import { all, type Row, type Work } from "../query.ts";
import { executionColumns, toExecution, parseStartBody } from "../reads/executions.ts";
import { openSqliteEngine } from "../sqlite/engine.ts";
import { databaseFile } from "../../model/state-layout.ts";
import { fromColumn } from "../text.ts";
import { isOwnerAlive } from "./owner.ts";

export interface ExportOptions extends ExportRange {
  directory: string;
  lockWaitMs?: number;
}

/**
 * Selects executions by when their start was recorded, on the store's clock. ISO times; `since` is inclusive, `until`
 * exclusive.
 */
export interface ExportRange {
  since?: string;
  until?: string;
}

export async function exportAudit(
  options: ExportOptions,
  write: (line: string) => void | Promise<void>,
): Promise<{ executions: number }> {
  const engine = await openSqliteEngine(databaseFile(options.directory), "read", options.lockWaitMs ?? 5000);
  try {
    return await exportFrom(engine, options, write);
  } finally {
    engine.close();
  }
}

/**
 * Writes one line of JSON for each execution in order of their start, for each refused write of a runner, and for each
 * decision on a run's question. If `write` returns a promise, the export waits for it.
 */
export async function exportFrom(
  engine: Engine,
  { since = "", until = "~" }: ExportRange,
  write: (line: string) => void | Promise<void>,
): Promise<{ executions: number }> {
  let executions = 0;
  for (let after = 0; ;) {
    const page = await engine.read(() => readRowsAfter(after, since, until));
    for (const { no, record } of page) {
      await write(`${JSON.stringify(record)}\n`);
      if (record.eventType === "command_execution") executions += 1;
      after = no;
    }
    if (page.length < pageSize) return { executions };
  }
}

const pageSize = 500;

/** Filters by the time of the batch, which comes from the store's clock, so a wrong runner clock hides nothing. */
const selectRows = `
  select started.no, started.kind, started.at, ${executionColumns}, runs.parent_run_id
  from audit_rows started join audit_batches batches on batches.batch_no = started.batch_no
    left join runs on runs.run_id = started.run_id
  where started.no > ? and started.kind in ('start', 'fenced', 'decision') and batches.at >= ? and batches.at < ?
  order by started.no limit ?`;

function* readRowsAfter(after: number, since: string, until: string): Work<{ no: number; record: ExportedRecord }[]> {
  return (yield all(selectRows, after, since, until, pageSize)).map((row) => ({
    no: Number(row["no"]),
    record: toRecord(row),
  }));
}

type ExportedRecord = ReturnType<typeof toRecord>;

function toRecord(row: Row) {
  if (row["kind"] === "fenced") return toRefusedRecord(row);
  return row["kind"] === "decision" ? toDecisionRecord(row) : toExecutionRecord(row);
}

/** Reads the body that ../moves/questions.ts wrote. */
function toDecisionRecord(row: Row) {
  const { request_id, ...decision } = JSON.parse(String(row["start_body"])) as { request_id: string };
  return {
    eventType: "permission_decision" as const,
    timestamp: fromColumn(String(row["at"])),
    runId: fromColumn(String(row["run_id"])),
    attempt: Number(row["attempt"]),
    requestId: request_id,
    ...decision,
  };
}

/** Shows only what the chain seals, except for the parent of a run that an earlier version recorded. */
function toExecutionRecord(row: Row) {
  const { run } = parseStartBody(row);
  if (run !== undefined) return toAuditRecord(toExecution(row), run.parent_run_id, run.created_at);
  const parent = row["parent_run_id"];
  const parentRunId = typeof parent === "string" ? fromColumn(parent) : null;
  return { ...toAuditRecord(toExecution(row), parentRunId), unsealed: ["parentRunId"] };
}

/** Reads the body that ../ops/fence.ts wrote. */
function toRefusedRecord(row: Row) {
  const { refused, runner_id, current_attempt, writes, executions, omitted, decisions } = JSON.parse(
    String(row["start_body"]),
  ) as RefusedBody;
  return {
    eventType: "refused_write" as const,
    timestamp: fromColumn(String(row["at"])),
    runId: fromColumn(String(row["run_id"])),
    attempt: Number(row["attempt"]),
    currentAttempt: current_attempt,
    runnerId: runner_id,
    refused,
    ...(writes === undefined ? {} : { writes }),
    executions: executions ?? [],
    ...(omitted === undefined ? {} : { omitted }),
    ...(decisions === undefined ? {} : { decisions }),
  };
}

interface RefusedBody {
  refused: string;
  /** null if the writer was not a runner but a process that records its own run. */
  runner_id: string | null;
  current_attempt: number;
  /** Number of writes, if more than one. */
  writes?: number;
  executions?: unknown[];
  /** Number of refused executions and decisions that are not listed. */
  omitted?: number;
  decisions?: unknown[];
}

/** The audit record in its export format, the only stored data in camelCase. */
export function toAuditRecord(
  { run_id, received_at, end_received_at, start, end }: Execution,
  parentRunId: string | null,
  submittedAt: string | null = null,
) {
  // An exec is a run with the id of its only execution. Export it as part of the run that it was started in, if any.
  const isExec = run_id === start.execution_id;
  return {
    eventType: "command_execution" as const,
    timestamp: start.started_at,
    recordedAt: received_at,
    endRecordedAt: end_received_at,
    clockDoubtful:
      isDoubtful(start.started_at, submittedAt, received_at) || isDoubtful(end?.ended_at, submittedAt, end_received_at),
    runId: (isExec ? parentRunId : null) ?? run_id,
    sessionId: start.correlation.session_id,
    taskId: start.correlation.task_id,
    stepId: start.correlation.step_id,
    toolCallId: start.correlation.tool_call_id,
    worktreeId: start.correlation.worktree_id,
    repoSha: start.correlation.repo_sha,
    command: start.command,
    exitCode: end?.exit_code ?? null,
    startTime: computeStartTime(start, end),
    endTime: end?.ended_at ?? null,
    durationMs: end?.duration_ms ?? null,
    executionId: start.execution_id,
    parentRunId,
    workingDirectory: start.working_directory,
    timeoutMs: start.timeout_ms,
    limits: start.limits ?? null,
    environment: start.environment ?? null,
    state: describeState(start, end),
    signal: end?.signal ?? null,
    timedOut: end?.timed_out ?? false,
    success: end?.success ?? false,
    interrupted: describeState(start, end) === "interrupted",
    isolation: end?.isolation ?? null,
    error: end?.error ?? null,
    // "command" if a command inside the run reported a nested exec; null if Drover started it itself.
    reportedBy: start.reported_by ?? null,
  };
}

/** When the process started. `timestamp` is when the start was recorded, a moment earlier. */
function computeStartTime({ started_at }: ExecutionStart, end: ExecutionEnd | null): string {
  if (end === null || end.duration_ms === null) return started_at;
  const time = new Date(Date.parse(end.ended_at) - end.duration_ms);
  return Number.isNaN(time.getTime()) ? started_at : time.toISOString();
}

/** Clocks of two machines that are set correctly differ by less. */
const maxClockSkewMs = 60_000;

/** Whether a time from a runner is impossible: before its run was submitted or after it was recorded. */
function isDoubtful(time: string | undefined, submittedAt: string | null, recordedAt: string | null): boolean {
  if (time === undefined || recordedAt === null) return false;
  const at = Date.parse(time);
  const earliest = submittedAt === null ? at : Date.parse(submittedAt) - maxClockSkewMs;
  return !(at >= earliest && at <= Date.parse(recordedAt) + maxClockSkewMs);
}

function describeState(start: ExecutionStart, end: ExecutionEnd | null): "ended" | "interrupted" | "running" {
  if (end !== null) return end.interrupted ? "interrupted" : "ended";
  return isOwnerAlive(start.owner) ? "running" : "interrupted";
}
