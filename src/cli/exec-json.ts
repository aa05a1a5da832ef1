import { isUtf8 } from "node:buffer";
import type { ExecRecord } from "../execute/exec.ts";
import { formatSkippedNote } from "../model/output.ts";
import type { CapturedOutput, OutputStream } from "../model/process.ts";

/** The result of an exec as JSON, with the command's output unchanged. The field names are a documented format. */
export function toExecutionJson({ runId, request, result }: ExecRecord) {
  const { correlation } = request;
  return {
    id: runId,
    command: request.display,
    workingDirectory: request.command.workingDirectory,
    exitCode: result.exitCode,
    signal: result.signal,
    success: result.success,
    timedOut: result.timedOut,
    startTime: result.startTime.toISOString(),
    endTime: result.endTime.toISOString(),
    durationMs: result.durationMs,
    ...toStreamFields("stdout", result.stdout),
    ...toStreamFields("stderr", result.stderr),
    truncated: result.stdout.truncated || result.stderr.truncated,
    isolation: result.isolation,
    leftovers: result.leftovers,
    error: result.error && { code: result.error.code, message: result.error.message },
    resources: result.resources,
    correlationIds: {
      runId: request.parentRunId ?? runId,
      sessionId: correlation.session_id,
      taskId: correlation.task_id,
      stepId: correlation.step_id,
      toolCallId: correlation.tool_call_id,
      worktreeId: correlation.worktree_id,
      repoSha: correlation.repo_sha,
    },
  };
}

function toStreamFields(name: OutputStream, captured: CapturedOutput): Record<string, string> {
  const { head, tail } = captured;
  const skipped = captured.totalBytes - head.length - tail.length;
  const skippedNote = captured.truncated ? Buffer.from(formatSkippedNote(skipped)) : Buffer.alloc(0);
  const bytes = Buffer.concat([head, skippedNote, tail]);
  return isUtf8(bytes) ? { [name]: bytes.toString("utf8") } : { [`${name}Base64`]: bytes.toString("base64") };
}
