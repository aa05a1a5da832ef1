import { textOf } from "../execute/output-log.ts";
import type { StoredEvent } from "../model/event.ts";

/** An event as one line for a person; output is not a line, but itself. */
export function eventLine({ event }: StoredEvent): string | null {
  switch (event.type) {
    case "output":
      return null;
    case "status":
      return event.reason ? `${event.status}: ${event.reason}` : event.status;
    case "assistant":
      return event.text;
    case "tool_use":
      return `${event.name} ${JSON.stringify(event.input)}`;
    case "tool_result":
      return `${event.is_error ? "failed" : "done"} ${JSON.stringify(event.output)}`;
    case "progress":
      return `${event.percent} %${event.message ? ` ${event.message}` : ""}`;
    case "file":
      return `file ${event.path} (${event.size} bytes)`;
    case "execution_started":
      return `$ ${event.execution.command}`;
    case "execution_ended":
      return `ended with ${event.execution.signal ?? event.execution.exit_code ?? "no code"}`;
    case "permission_request":
      return `asks to use ${event.tool}: ${JSON.stringify(event.input)}`;
    case "permission_decision":
      return `${event.decision} by ${event.by}`;
    case "usage":
      return `${event.usage.input_tokens} tokens in, ${event.usage.output_tokens} out`;
    case "error":
      return `error: ${event.message}`;
    case "system":
      return event.subtype;
    case "result":
      return event.error ? `${event.status}: ${event.error}` : event.status;
    default:
      return event satisfies never;
  }
}

export function outputOf({ event }: StoredEvent): { stream: "stdout" | "stderr"; text: string } | null {
  return event.type === "output" ? { stream: event.stream, text: textOf(event) } : null;
}
