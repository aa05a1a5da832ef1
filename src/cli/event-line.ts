import type { ExecutionEnd } from "../model/execution.ts";
import type { RunEvent, StoredEvent } from "../model/event.ts";
import { getDisplayBytes } from "../model/output.ts";
import { replaceControlCharacters, formatBytes } from "./table.ts";

/** Describes an event for a person, usually in one line. Returns null for output, which is printed unchanged. */
export function describeEvent({ event }: StoredEvent): string | null {
  switch (event.type) {
    case "output":
      return null;
    case "status":
      return event.reason ? `${event.status}: ${event.reason}` : event.status;
    case "assistant":
      return event.text;
    case "tool_use":
      return `> ${event.name} ${formatValue(event.input)}`;
    case "tool_result":
      return `< ${event.is_error ? "failed" : "done"} ${formatValue(event.output)}`;
    case "progress":
      return `${event.percent} %${event.message ? ` ${event.message}` : ""}`;
    case "file":
      return `file ${replaceControlCharacters(event.path)} (${formatBytes(event.size)}, ${event.media_type})`;
    case "execution_started":
      return `${event.execution.reported_by ? "nested " : ""}$ ${event.execution.command}`;
    case "execution_ended":
      return `${event.execution.reported_by ? "nested " : ""}${describeExit(event.execution)}`;
    case "permission_request":
      return `asks to use ${event.tool}: ${formatValue(event.input)}`;
    case "permission_decision":
      return `${event.decision} by ${event.by}`;
    case "usage":
      return describeUsage(event.usage);
    case "error":
      return `error: ${event.message}`;
    case "system":
      return describeSystemEvent(event);
    case "result":
      return event.error ? `${event.status}: ${event.error}` : event.status;
    default:
      return event satisfies never;
  }
}

/** Describes how a command ended. Without an exit code and a signal, it never started, or Drover did not see its end. */
function describeExit({ interrupted, signal, exit_code }: ExecutionEnd): string {
  const result = signal ?? exit_code;
  if (result !== null) return `ended with ${result}`;
  return interrupted ? "ended with no exit code" : "could not start";
}

export function toOutput({ event }: StoredEvent): { stream: "stdout" | "stderr"; bytes: Buffer } | null {
  return event.type === "output" ? { stream: event.stream, bytes: getDisplayBytes(event) } : null;
}

/** Returns a warning if Drover dropped or could not do something while the run continued. Warnings are shown even without a terminal. */
export function toWarning({ event }: StoredEvent): string | null {
  return event.type === "error" && droverErrorCodes.has(event.code ?? "") ? `warning: ${event.message}` : null;
}

/** Codes of the `error` events that Drover itself writes. All others come from the agent's program. */
const droverErrorCodes: ReadonlySet<string> = new Set([
  "bad_event",
  "bad_line",
  "bad_outcome",
  "event_refused",
  "event_too_large",
  "on_finish",
  "refused_decision",
  "refused_execution",
  "result_truncated",
  "undeclared_ask",
  "upload_failed",
]);

/** Truncates text to its first line and to the width of the terminal. */
export function truncateToLine(text: string): string {
  const [first = ""] = text.trim().split("\n", 1);
  const maxLength = Math.max((process.stderr.columns || 120) - 4, 20);
  // Do not split a surrogate pair.
  const start = first.slice(0, maxLength).replace(/[\ud800-\udbff]$/, "");
  return start.length < text.trim().length ? `${start} …` : start;
}

export function describeUsage({
  input_tokens,
  output_tokens,
  cost_usd,
}: Extract<RunEvent, { type: "usage" }>["usage"]): string {
  const cost = cost_usd === null ? "" : `, $${cost_usd.toFixed(cost_usd < 1 ? 4 : 2)}`;
  return `${input_tokens} tokens in, ${output_tokens} out${cost}`;
}

function describeSystemEvent({ subtype, executor_session_id, data }: Extract<RunEvent, { type: "system" }>): string {
  if (subtype === "init") return executor_session_id ? `session ${executor_session_id}` : "session started";
  const label = subtype.replaceAll("_", " ");
  return data === undefined || data === null ? label : `${label}: ${formatValue(data)}`;
}

/** Formats the input or output of a tool: text, text blocks, an object with a message, or any other JSON. */
function formatValue(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.length > 0 && value.every((block) => findOnlyText(block, "text") !== null))
    return value.map((block) => findOnlyText(block, "text")).join("\n");
  return findOnlyText(value, "message") ?? JSON.stringify(value) ?? "";
}

/** Returns the text of an object that has no other field than `type`, so that no field is lost. */
function findOnlyText(value: unknown, key: "text" | "message"): string | null {
  if (typeof value !== "object" || value === null) return null;
  const { type: _kind, [key]: text, ...others } = value as Record<string, unknown>; // Every object is a record of unknowns.
  return typeof text === "string" && Object.keys(others).length === 0 ? text : null;
}
