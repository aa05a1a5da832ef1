import type { RunContext } from "../../../model/executor.ts";
import type { Conclusion, Reader } from "./definition.ts";
import { createEventWriter, type Denied } from "./event-writer.ts";

/** Writes a client's lines to the log. No line, however malformed, ends the run. */
export interface LineReader {
  read(line: string): Promise<void>;
  conclude: Reader["conclude"];
  /** The last denied tool, if no later tool call succeeded. */
  denied(): Denied | null;
  /** The client's own session id; null if it never reported one. */
  session(): string | null;
}

export function createLineReader(reader: Reader, context: RunContext): LineReader {
  const writer = createEventWriter(context);
  return {
    async read(line) {
      const message = objectOf(line);
      if (message === null) return context.emit({ type: "output", stream: "stdout", text: cut(line, maxUnknownLine) });
      const messages = reader.read(message) ?? [
        { type: "system", subtype: "client_message", data: cut(line, maxUnknownLine) } as const,
      ];
      for (const each of messages) await writer.write(each);
    },
    conclude: (end): Conclusion | null => reader.conclude(end),
    denied: writer.denied,
    session: writer.session,
  };
}

/** Enough to identify an unknown line. The client's own log has the rest. */
const maxUnknownLine = 8 * 1024;
/** Longer lines are not parsed: no message or tool result is this long. */
const maxLine = 16 * 1024 * 1024;

function objectOf(line: string): Record<string, unknown> | null {
  if (line.length > maxLine || !line.trimStart().startsWith("{")) return null;
  try {
    // a line that starts with a brace can only parse as an object
    return JSON.parse(line) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function cut(text: string, length: number): string {
  return text.length <= length ? `${text}\n` : `${text.slice(0, length)}… (${text.length - length} more characters)\n`;
}
