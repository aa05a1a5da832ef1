import * as z from "zod";
import { executionEndSchema, executionStartSchema } from "./execution.ts";
import { failureReasons, runStatuses, endedStatuses } from "./states.ts";
import { effects } from "./tool.ts";

export const usageSchema = z.object({
  input_tokens: z.number(),
  output_tokens: z.number(),
  cost_usd: z.number().nullable(),
});
export type Usage = z.infer<typeof usageSchema>;

/** How a question ended: decided by a person, expired, or superseded by a later attempt. */
export const questionDecisions = ["allow", "deny", "stop", "expired", "superseded"] as const;

/** The original message of a coding agent. If one message produced several events, only the first event carries it. */
const raw = z.unknown().optional();
/** The event exceeded the size limit, and its runner removed a part of it. */
const truncated = z.literal(true).optional();

/** One line of a run's log as an executor emits it. The runner redacts and numbers it. */
export const runEventSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("status"), status: z.enum(runStatuses), reason: z.string().optional() }),
  /** The subtype "init" carries the executor's session id. */
  z.object({
    type: z.literal("system"),
    subtype: z.string(),
    executor_session_id: z.string().optional(),
    data: z.unknown().optional(),
    raw,
    truncated,
  }),
  z.object({ type: z.literal("assistant"), text: z.string(), raw, truncated }),
  z.object({
    type: z.literal("tool_use"),
    tool_use_id: z.string(),
    name: z.string(),
    input: z.unknown(),
    raw,
    truncated,
  }),
  z.object({
    type: z.literal("tool_result"),
    tool_use_id: z.string(),
    is_error: z.boolean(),
    output: z.unknown(),
    raw,
    truncated,
  }),
  z.object({
    type: z.literal("output"),
    stream: z.enum(["stdout", "stderr"]),
    text: z.string().optional(),
    /** Used instead of `text` if the bytes are not valid UTF-8. */
    base64: z.string().optional(),
    /** Number of bytes dropped before this piece. */
    skipped: z.number().optional(),
  }),
  z.object({ type: z.literal("progress"), percent: z.number().min(0).max(100), message: z.string().optional() }),
  z.object({ type: z.literal("file"), path: z.string(), size: z.number(), sha256: z.string(), media_type: z.string() }),
  z.object({ type: z.literal("execution_started"), execution: executionStartSchema }),
  z.object({ type: z.literal("execution_ended"), execution: executionEndSchema }),
  z.object({
    type: z.literal("permission_request"),
    request_id: z.string(),
    tool: z.string(),
    input: z.unknown(),
    effect: z.enum(effects).optional(),
    input_schema: z.record(z.string(), z.unknown()).optional(),
  }),
  z.object({
    type: z.literal("permission_decision"),
    request_id: z.string(),
    decision: z.enum(questionDecisions),
    by: z.string(),
    message: z.string().optional(),
    /** The input as edited by the person who decided. */
    input: z.unknown().optional(),
    remember: z.literal("session").optional(),
  }),
  /** The usage of one turn. A run's usage is the sum over its turns. */
  z.object({ type: z.literal("usage"), usage: usageSchema }),
  z.object({ type: z.literal("error"), code: z.string().optional(), message: z.string(), raw, truncated }),
  /** Always the last event of a run. */
  z.object({
    type: z.literal("result"),
    status: z.enum(endedStatuses),
    reason: z.enum(failureReasons).nullable(),
    error: z.string().nullable(),
    exit_code: z.number().nullable(),
    result_text: z.string().nullable(),
    result_data: z.unknown(),
  }),
]);
export type RunEvent = z.infer<typeof runEventSchema>;
export type ResultEvent = Extract<RunEvent, { type: "result" }>;
export type PermissionRequestEvent = Extract<RunEvent, { type: "permission_request" }>;

/** An event as a runner ships it. `n` counts up without gaps within an attempt. */
export interface NumberedEvent {
  n: number;
  at: string;
  event: RunEvent;
}

/** An event as stored: `seq` is gapless per run, and `cursor` orders the events of all runs by commit. */
export interface StoredEvent {
  run_id: string;
  seq: number;
  attempt: number;
  /** null for events that the coordinator added. */
  n: number | null;
  /** Time on the clock of the process that created the event. A runner's clock may be wrong. */
  at: string;
  /** Time on the store's clock. Missing in records of older versions. */
  received_at?: string;
  cursor: number;
  event: RunEvent;
}
