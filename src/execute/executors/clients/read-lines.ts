import type { RunEvent } from "../../../model/event.ts";
import type { RunContext } from "../../../model/executor.ts";
import { bounded } from "./bounded.ts";
import type { Conclusion, Reader, Said } from "./definition.ts";

/** Lines of a client on their way into the log. Whatever a line is, it never ends the run by itself. */
export interface LineReader {
  read(line: string): Promise<void>;
  conclude: Reader["conclude"];
  /** The last tool it was denied, where nothing it tried after that succeeded. */
  denied(): { tool: string; message?: string } | null;
}

export function createLineReader(reader: Reader, context: RunContext): LineReader {
  let denied: { tool: string; message?: string } | null = null;
  let session: string | null = null;

  const say = async (said: Said): Promise<void> => {
    switch (said.type) {
      case "session":
        if (said.id === session) return;
        session = said.id;
        return emit({ type: "system", subtype: "init", executor_session_id: said.id, data: said.data });
      case "partial":
        return context.partial({ kind: "assistant", text: said.text });
      case "usage":
        return context.usage(said.usage);
      case "denied": {
        const { type: _type, ...data } = said;
        denied = data;
        return emit({ type: "system", subtype: "permission_denied", data });
      }
      case "tool_result":
        if (!said.is_error) denied = null;
        return emit(said);
      case "system":
      case "assistant":
      case "tool_use":
      case "error":
        return emit(said);
      default: {
        const unknown: never = said;
        throw new TypeError(`A reader said something unknown: ${JSON.stringify(unknown)}`);
      }
    }
  };
  const emit = (event: RunEvent): Promise<void> => context.emit(bounded(event));

  return {
    async read(line) {
      const message = objectOf(line);
      if (message === null) return context.emit({ type: "output", stream: "stdout", text: cut(line, otherLine) });
      const said = reader.read(message);
      if (said === null) return emit({ type: "system", subtype: "client_message", data: cut(line, otherLine) });
      for (const one of said) await say(one);
    },
    conclude: (end): Conclusion | null => reader.conclude(end),
    denied: () => denied,
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
