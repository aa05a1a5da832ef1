import type { ExecutionEnd } from "./execution.ts";

/** Creates the end of an execution whose Drover process died or was lost before it could record one. */
export function createInterruptedEnd(execution_id: string, ended_at: string, message: string): ExecutionEnd {
  return {
    execution_id,
    exit_code: null,
    signal: null,
    stopped: null,
    success: false,
    timed_out: false,
    interrupted: true,
    ended_at,
    // The real end time is unknown.
    duration_ms: null,
    isolation: null,
    leftovers: 0,
    resources: null,
    error: { code: "DROVER-EXE-011", message },
    stdout_bytes: 0,
    stderr_bytes: 0,
    truncated: false,
  };
}
