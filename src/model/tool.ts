import type { Command, RunningProcess } from "./process.ts";

/** The kind of effect a tool has. It determines what a permission mode allows. */
export const effects = ["read", "edit", "execute", "network"] as const;
export type Effect = (typeof effects)[number];

/** A tool that a model may call. Expected failures are results, so that the model can react to them. */
export interface Tool {
  name: string;
  description: string;
  /** JSON Schema of the input. */
  input_schema: Record<string, unknown>;
  effect: Effect;
  run(input: unknown, context: ToolContext): Promise<ToolResponse>;
}

export interface ToolContext {
  signal: AbortSignal;
  /** Starts a process. It is audited if the tool belongs to a run. */
  start(command: Command): Promise<RunningProcess>;
}

export type ToolResponse = { ok: true; [field: string]: unknown } | { ok: false; error: ToolFault };

export interface ToolFault {
  code: ToolFaultCode;
  message: string;
}

export const toolFaultCodes = [
  "invalid_input",
  "unknown_tool",
  "outside_workspace",
  "not_found",
  "not_a_file",
  "not_a_folder",
  "protected",
  "permission_denied",
  "too_large",
  "binary",
  "no_match",
  "ambiguous_match",
  "changed_meanwhile",
  "no_space",
  "dependency_missing",
  "effect_unknown",
  "cancelled",
  "failed",
] as const;
export type ToolFaultCode = (typeof toolFaultCodes)[number];
