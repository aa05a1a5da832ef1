import type { ExecutionEnd } from "./execution.ts";

/** Of an execution whose end its own Drover could not write, as it died or was no longer heard: by whoever finds it. */
export function interruptedEnd(execution_id: string, ended_at: string, message: string): ExecutionEnd {
  return {
    execution_id,
    exit_code: null,
    signal: null,
    stopped: null,
    success: false,
    timed_out: false,
    interrupted: true,
    ended_at,
    // when it really ended is not known
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
