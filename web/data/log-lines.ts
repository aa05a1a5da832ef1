import type { StoredEvent } from "../../src/model/event.ts";

export interface LogLine {
  /** Counted from 1, as in links to the line. */
  no: number;
  at: string;
  stream: "stdout" | "stderr" | "drover";
  text: string;
}

/**
 * Splits output into lines, joining lines that arrive in pieces, and adds lines for Drover's own messages: state changes,
 * errors and skipped output.
 */
export function logLines(events: readonly StoredEvent[]): LogLine[] {
  const lines: LogLine[] = [];
  const open: Record<"stdout" | "stderr", LogLine | null> = { stdout: null, stderr: null };
  const push = (at: string, stream: LogLine["stream"], text: string): LogLine => {
    const line = { no: lines.length + 1, at, stream, text };
    lines.push(line);
    return line;
  };
  for (const { at, event } of events) {
    if (event.type === "output") {
      if (event.skipped) push(at, "drover", `${event.skipped.toLocaleString("en-US")} bytes were not kept`);
      const text = event.text ?? (event.base64 === undefined ? "" : `[${event.base64.length} characters of base64]`);
      const pieces = text.split("\n");
      for (const [index, piece] of pieces.entries()) {
        const last = index === pieces.length - 1;
        const unfinished = open[event.stream];
        if (unfinished) unfinished.text += piece;
        else if (piece !== "" || !last) open[event.stream] = push(at, event.stream, piece);
        if (!last) open[event.stream] = null;
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
