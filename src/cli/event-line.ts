import type { RunEvent, StoredEvent } from "../model/event.ts";
import { shownBytes } from "../model/output.ts";
import { printable, size } from "./table.ts";

/** An event for a person, mostly one line; output is not a line, but itself. */
export function eventLine({ event }: StoredEvent): string | null {
  switch (event.type) {
    case "output":
      return null;
    case "status":
      return event.reason ? `${event.status}: ${event.reason}` : event.status;
    case "assistant":
      return event.text;
    case "tool_use":
      return `> ${event.name} ${inWords(event.input)}`;
    case "tool_result":
      return `< ${event.is_error ? "failed" : "done"} ${inWords(event.output)}`;
    case "progress":
      return `${event.percent} %${event.message ? ` ${event.message}` : ""}`;
    case "file":
      return `file ${printable(event.path)} (${size(event.size)}, ${event.media_type})`;
    case "execution_started":
      return `${event.execution.reported_by ? "nested " : ""}$ ${event.execution.command}`;
    case "execution_ended":
      return `${event.execution.reported_by ? "nested " : ""}ended with ${event.execution.signal ?? event.execution.exit_code ?? "no code"}`;
    case "permission_request":
      return `asks to use ${event.tool}: ${inWords(event.input)}`;
    case "permission_decision":
      return `${event.decision} by ${event.by}`;
    case "usage":
      return usageLine(event.usage);
    case "error":
      return `error: ${event.message}`;
    case "system":
      return systemLine(event);
    case "result":
      return event.error ? `${event.status}: ${event.error}` : event.status;
    default:
      return event satisfies never;
  }
}

export function outputOf({ event }: StoredEvent): { stream: "stdout" | "stderr"; bytes: Buffer } | null {
  return event.type === "output" ? { stream: event.stream, bytes: shownBytes(event) } : null;
}

/** What Drover left out or could not do although the run went on: nobody may miss it, whether they watch or not. */
export function warningOf({ event }: StoredEvent): string | null {
  return event.type === "error" && ourFaults.has(event.code ?? "") ? `warning: ${event.message}` : null;
}

/** Codes of `error` events that are Drover's own words; others are those of the agent's program. */
const ourFaults: ReadonlySet<string> = new Set([
  "bad_event",
  "bad_line",
  "bad_outcome",
  "event_refused",
  "event_too_large",
  "on_finish",
  "refused_decision",
  "refused_execution",
  "result_truncated",
  "upload_failed",
]);

/** What fits on a line; the rest is in the log. */
export function brief(line: string): string {
  const [first = ""] = line.trim().split("\n", 1);
  const room = Math.max((process.stderr.columns || 120) - 4, 20);
  // not in the middle of a pair of surrogates
  const cut = first.slice(0, room).replace(/[\ud800-\udbff]$/, "");
  return cut.length < line.trim().length ? `${cut} …` : cut;
}

export function usageLine({
  input_tokens,
  output_tokens,
  cost_usd,
}: Extract<RunEvent, { type: "usage" }>["usage"]): string {
  const cost = cost_usd === null ? "" : `, $${cost_usd.toFixed(cost_usd < 1 ? 4 : 2)}`;
  return `${input_tokens} tokens in, ${output_tokens} out${cost}`;
}

function systemLine({ subtype, executor_session_id, data }: Extract<RunEvent, { type: "system" }>): string {
  if (subtype === "init") return executor_session_id ? `session ${executor_session_id}` : "session begun";
  const words = subtype.replaceAll("_", " ");
  return data === undefined || data === null ? words : `${words}: ${inWords(data)}`;
}

/** What tools and executors hand over may be anything: a text, blocks of text, an object with a message, other JSON. */
function inWords(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.length > 0 && value.every((block) => textIn(block, "text") !== null))
    return value.map((block) => textIn(block, "text")).join("\n");
  return textIn(value, "message") ?? JSON.stringify(value) ?? "";
}

/** Only where nothing else stands beside it but its kind: everything else would be kept from the reader. */
function textIn(value: unknown, key: "text" | "message"): string | null {
  if (typeof value !== "object" || value === null) return null;
  const { type: _kind, [key]: text, ...others } = value as Record<string, unknown>; // any object is one of unknowns
  return typeof text === "string" && Object.keys(others).length === 0 ? text : null;
}
