import type { SchemaFault } from "./limits.ts";

/** Identifies the worker thread of the engine. Other threads that load its file must not act as the worker. */
export const workerName = "drover-json-schema";

/** Sent to the worker, one at a time. */
export type CheckRequest =
  | { kind: "check"; schemaText: string; valueText: string }
  | { kind: "schema"; schemaText: string };

/** Sent by the worker. `compiled` separates compiling from checking, which have separate deadlines. */
export type Report =
  /** `thread` is the kernel's thread id, for measuring its CPU time. */
  { type: "ready"; thread: string | null } | { type: "compiled" } | { type: "done"; faults: SchemaFault[] };

/**
 * `incomplete`: the deadline passed, the worker failed, or the check was cancelled. `refused`: not checked,
 * because it exceeds a limit. `busy`: this caller has requested too many checks and may retry after `retryAfterSeconds`.
 */
export interface CheckResult {
  faults: SchemaFault[];
  reason?: "incomplete" | "refused" | "busy";
  retryAfterSeconds?: number;
}
