import type { RunContext } from "../../../model/executor.ts";
import type { Conclusion, Reader } from "./definition.ts";
import { createEventWriter, type Denial } from "./event-writer.ts";

/** Writes a client's lines to the log. A malformed line never fails the run. */
export interface LineReader {
  read(line: string): Promise<void>;
  conclude: Reader["conclude"];
  /** The last denied tool, if no later tool call succeeded. */
  getDenial(): Denial | null;
  /** The client's own session id; null if it never reported one. */
  getSession(): string | null;
}

export function createLineReader(reader: Reader, context: RunContext): LineReader {
  const writer = createEventWriter(context);
  return {
    async read(line) {
      const message = parseObject(line);
      if (message === null)
        return context.emit({ type: "output", stream: "stdout", text: truncateLine(line, maxUnknownCharacters) });
      const messages = reader.read(message) ?? [
        { type: "system", subtype: "client_message", data: truncateLine(line, maxUnknownCharacters) } as const,
      ];
      for (const clientMessage of messages) await writer.write(clientMessage);
    },
    conclude: (end): Conclusion | null => reader.conclude(end),
    getDenial: writer.getDenial,
    getSession: writer.getSession,
  };
}

/** How much of an unknown line is logged, which is enough to identify it. The client's own log has the rest. */
const maxUnknownCharacters = 8 * 1024;
/** Longer lines are not parsed. Messages and tool results are shorter. */
const maxLineCharacters = 16 * 1024 * 1024;

function parseObject(line: string): Record<string, unknown> | null {
  if (line.length > maxLineCharacters || !line.trimStart().startsWith("{")) return null;
  try {
    // A line that starts with a brace can only be parsed as an object.
    return JSON.parse(line) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function truncateLine(text: string, length: number): string {
  return text.length <= length ? `${text}\n` : `${text.slice(0, length)}… (${text.length - length} more characters)\n`;
}
