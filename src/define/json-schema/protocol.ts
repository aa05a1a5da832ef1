import type { SchemaFault } from "./limits.ts";

/** Marks the engine's worker, so that another thread that loads the file does not act as one. */
export const workerMark = "drover-json-schema";

/** Sent to the worker, one at a time. */
export type Job = { kind: "check"; schemaText: string; valueText: string } | { kind: "schema"; schemaText: string };

/** Sent by the worker. `compiled` comes between because compiling and checking have separate deadlines. */
export type Report =
  /** `thread` is the kernel's thread id, for measuring its CPU time. */
  { type: "ready"; thread: string | null } | { type: "compiled" } | { type: "done"; faults: SchemaFault[] };

/**
 * `late`: no answer within the deadline, or none at all. `refused`: over a limit, so not checked. `busy`: this caller has
 * requested too many checks and may retry after `retryAfterSeconds`.
 */
export interface CheckResult {
  faults: SchemaFault[];
  why?: "late" | "refused" | "busy";
  retryAfterSeconds?: number;
}
