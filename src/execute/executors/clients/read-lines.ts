import type { RunContext } from "../../../model/executor.ts";
import type { Conclusion, Reader } from "./definition.ts";
import { createEventWriter, type Denied } from "./event-writer.ts";

/** Lines of a client on their way into the log. Whatever a line is, it never ends the run by itself. */
export interface LineReader {
  read(line: string): Promise<void>;
  conclude: Reader["conclude"];
  /** The last tool it was denied, where nothing it tried after that succeeded. */
  denied(): Denied | null;
  /** The client's own id of the session; null: it never said one. */
  session(): string | null;
}

export function createLineReader(reader: Reader, context: RunContext): LineReader {
  const writer = createEventWriter(context);
  return {
    async read(line) {
      const message = objectOf(line);
      if (message === null) return context.emit({ type: "output", stream: "stdout", text: cut(line, otherLine) });
      const said = reader.read(message) ?? [
        { type: "system", subtype: "client_message", data: cut(line, otherLine) } as const,
      ];
      for (const one of said) await writer.write(one);
    },
    conclude: (end): Conclusion | null => reader.conclude(end),
    denied: writer.denied,
    session: writer.session,
  };
}

/** Enough to see what it is; the client's own log has the rest. */
const otherLine = 8 * 1024;
/** Text that is longer is not parsed: a line of a client is a message or the result of a tool. */
const maxLine = 16 * 1024 * 1024;

function objectOf(line: string): Record<string, unknown> | null {
  if (line.length > maxLine || !line.trimStart().startsWith("{")) return null;
  try {
    // it begins with a brace, so it is an object where it is JSON at all
    return JSON.parse(line) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function cut(text: string, length: number): string {
  return text.length <= length ? `${text}\n` : `${text.slice(0, length)}… (${text.length - length} more characters)\n`;
}
