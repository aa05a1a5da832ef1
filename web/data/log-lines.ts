import type { StoredEvent } from "../../src/model/event.ts";

export interface LogLine {
  /** The line's number, counted from 1, as in links to the line. */
  number: number;
  at: string;
  stream: "stdout" | "stderr" | "drover";
  text: string;
}

/**
 * Splits output into lines, joining lines that arrive in parts, and adds lines for Drover's own messages: state changes,
 * errors and skipped output.
 */
export function toLogLines(events: readonly StoredEvent[]): LogLine[] {
  const lines: LogLine[] = [];
  const unfinished: Record<"stdout" | "stderr", LogLine | null> = { stdout: null, stderr: null };
  const push = (at: string, stream: LogLine["stream"], text: string): LogLine => {
    const line = { number: lines.length + 1, at, stream, text };
    lines.push(line);
    return line;
  };
  for (const { at, event } of events) {
    if (event.type === "output") {
      if (event.skipped) push(at, "drover", `${event.skipped.toLocaleString("en-US")} bytes of output were dropped`);
      const text = event.text ?? (event.base64 === undefined ? "" : `[${event.base64.length} characters of base64]`);
      const parts = text.split("\n");
      for (const [index, part] of parts.entries()) {
        const isLast = index === parts.length - 1;
        const line = unfinished[event.stream];
        if (line) line.text += part;
        else if (part !== "" || !isLast) unfinished[event.stream] = push(at, event.stream, part);
        if (!isLast) unfinished[event.stream] = null;
      }
    } else if (event.type === "status") push(at, "drover", `${event.status}${event.reason ? `: ${event.reason}` : ""}`);
    else if (event.type === "error") push(at, "drover", event.message);
    else if (event.type === "progress")
      push(at, "drover", `${event.percent} %${event.message ? ` ${event.message}` : ""}`);
    else if (event.type === "execution_started") push(at, "drover", `$ ${event.execution.command}`);
    else if (event.type === "result")
      push(at, "drover", `${event.status}${event.exit_code === null ? "" : `, exit code ${event.exit_code}`}`);
  }
  return lines;
}
