import type { ExecutionEnd, ExecutionStart } from "../../model/execution.ts";
import type { Execution } from "../../model/store.ts";
import { executionFromRow } from "../reads/executions.ts";
import type { Connection } from "../sqlite/connection.ts";
import { hostFault } from "../sqlite/faults.ts";
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

/** One line of JSON for each execution, in the order they began. A promise of `write` holds the export back. */
export async function exportAudit(
  { directory, since, until, lockWaitMs = 5000 }: ExportOptions,
  write: (line: string) => void | Promise<void>,
): Promise<{ executions: number }> {
  const file = databaseFile(directory);
  const connection = await openConnection(file, "read", lockWaitMs);
  try {
    let executions = 0;
    for (let after = 0; ;) {
      const page = await patiently(() => startsAfter(connection, after, since ?? "", until ?? "~"), file, lockWaitMs);
      for (const { no, execution, parent_run_id } of page) {
        await write(`${JSON.stringify(auditRecord(execution, parent_run_id))}\n`);
        after = no;
      }
      executions += page.length;
      if (page.length < pageSize) return { executions };
    }
  } catch (fault) {
    throw hostFault(fault, file);
  } finally {
    connection.close();
  }
}

const pageSize = 500;

const selectStarts = `
  select started.no, started.run_id, started.attempt, started.body as start_body, runs.parent_run_id,
    (select ended.body from audit_rows ended
     where ended.execution_id = started.execution_id and ended.kind = 'end'
     order by ended.no desc limit 1) as end_body
  from audit_rows started left join runs on runs.run_id = started.run_id
  where started.no > ? and started.kind = 'start' and started.at >= ? and started.at < ?
  order by started.no limit ?`;

function startsAfter(connection: Connection, after: number, since: string, until: string) {
  return connection
    .sql(selectStarts)
    .all(after, since, until, pageSize)
    .map((row) => ({
      no: Number(row["no"]),
      execution: executionFromRow(row),
      parent_run_id: typeof row["parent_run_id"] === "string" ? fromColumn(row["parent_run_id"]) : null,
    }));
}

/** Document 004's audit record and what we add to it: the one place that speaks camelCase at rest. */
export function auditRecord({ run_id, start, end }: Execution, parentRunId: string | null) {
  return {
    eventType: "command_execution",
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
