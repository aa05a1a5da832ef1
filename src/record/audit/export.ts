import type { ExecutionEnd, ExecutionStart } from "../../model/execution.ts";
import type { Execution } from "../../model/store.ts";
import { executionFromRow } from "../reads/executions.ts";
import type { Connection } from "../sqlite/connection.ts";
import { hostFault } from "../sqlite/faults.ts";
import type { Row } from "../sqlite/driver.ts";
import { openConnection } from "../sqlite/open-connection.ts";
import { patiently } from "../sqlite/patience.ts";
import { databaseFile } from "../state-directory.ts";
import { fromColumn } from "../text.ts";
import { ownerIsAlive } from "./owner.ts";

export interface ExportOptions {
  directory: string;
  /** Of the start of an execution; ISO times, inclusive and exclusive. */
  since?: string;
  until?: string;
  lockWaitMs?: number;
}

/**
 * One line of JSON for each execution, in the order they began, and one for each write of a runner that was
 * refused. A promise of `write` holds the export back.
 */
export async function exportAudit(
  { directory, since, until, lockWaitMs = 5000 }: ExportOptions,
  write: (line: string) => void | Promise<void>,
): Promise<{ executions: number }> {
  const file = databaseFile(directory);
  const connection = await openConnection(file, "read", lockWaitMs);
  try {
    let executions = 0;
    for (let after = 0; ;) {
      const page = await patiently(
        () => rowsAfter(connection, after, since ?? "", until ?? "~"),
        file,
        lockWaitMs,
      ).catch((fault: unknown) => {
        // Of reading alone: what `write` throws is its caller's.
        throw hostFault(fault, file);
      });
      for (const { no, record } of page) {
        await write(`${JSON.stringify(record)}\n`);
        if (record.eventType === "command_execution") executions += 1;
        after = no;
      }
      if (page.length < pageSize) return { executions };
    }
  } finally {
    connection.close();
  }
}

const pageSize = 500;

const selectRows = `
  select started.no, started.kind, started.at, started.run_id, started.attempt, started.body as start_body, runs.parent_run_id,
    (select ended.body from audit_rows ended
     where ended.execution_id = started.execution_id and ended.kind = 'end'
     order by ended.no desc limit 1) as end_body
  from audit_rows started left join runs on runs.run_id = started.run_id
  where started.no > ? and started.kind in ('start', 'fenced') and started.at >= ? and started.at < ?
  order by started.no limit ?`;

function rowsAfter(connection: Connection, after: number, since: string, until: string) {
  return connection
    .sql(selectRows)
    .all(after, since, until, pageSize)
    .map((row) => ({
      no: Number(row["no"]),
      record: row["kind"] === "fenced" ? refusedRecord(row) : executionRecord(row),
    }));
}

function executionRecord(row: Row) {
  const parent = row["parent_run_id"];
  return auditRecord(executionFromRow(row), typeof parent === "string" ? fromColumn(parent) : null);
}

/** The body was written by fence.ts. */
function refusedRecord(row: Row) {
  const { refused, runner_id, current_attempt, executions } = JSON.parse(String(row["start_body"])) as RefusedBody;
  return {
    eventType: "refused_write" as const,
    timestamp: fromColumn(String(row["at"])),
    runId: fromColumn(String(row["run_id"])),
    attempt: Number(row["attempt"]),
    currentAttempt: current_attempt,
    runnerId: runner_id,
    refused,
    executions: executions ?? [],
  };
}

interface RefusedBody {
  refused: string;
  runner_id: string;
  current_attempt: number;
  executions?: unknown[];
}

/** Document 004's audit record and what we add to it: the one place that speaks camelCase at rest. */
export function auditRecord({ run_id, start, end }: Execution, parentRunId: string | null) {
  return {
    eventType: "command_execution" as const,
    timestamp: start.started_at,
    runId: run_id,
    sessionId: start.correlation.session_id,
    taskId: start.correlation.task_id,
    stepId: start.correlation.step_id,
    toolCallId: start.correlation.tool_call_id,
    worktreeId: start.correlation.worktree_id,
    repoSha: start.correlation.repo_sha,
    command: start.command,
    exitCode: end?.exit_code ?? null,
    durationMs: end?.duration_ms ?? null,
    executionId: start.execution_id,
    parentRunId,
    workingDirectory: start.working_directory,
    state: stateOf(start, end),
    signal: end?.signal ?? null,
    timedOut: end?.timed_out ?? false,
    success: end?.success ?? false,
    interrupted: stateOf(start, end) === "interrupted",
    isolation: end?.isolation ?? null,
    error: end?.error ?? null,
  };
}

function stateOf(start: ExecutionStart, end: ExecutionEnd | null): "ended" | "interrupted" | "running" {
  if (end !== null) return end.interrupted ? "interrupted" : "ended";
  return ownerIsAlive(start.owner) ? "running" : "interrupted";
}
