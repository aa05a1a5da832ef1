import type { SchemaFault } from "./limits.ts";

/** How the engine's worker is told from any other thread that happens to load its file. */
export const workerMark = "drover-json-schema";

/** To the worker, one at a time. */
export type Job = { kind: "check"; schemaText: string; valueText: string } | { kind: "schema"; schemaText: string };

/** From the worker. Compiling and checking have a deadline each, hence the word in between. */
export type Report =
  /** With its thread, whose time is what counts. */
  { type: "ready"; thread: string | null } | { type: "compiled" } | { type: "done"; faults: SchemaFault[] };

/**
 * `late`: no answer within the deadline, or none at all; `refused`: past a limit, not even tried; `busy`: this caller has
 * asked for too much of late, and may ask again after so many seconds.
 */
export interface CheckResult {
  faults: SchemaFault[];
  why?: "late" | "refused" | "busy";
  retryAfterSeconds?: number;
}
