import type { RunEvent } from "../../../model/event.ts";
import type { RunContext } from "../../../model/executor.ts";
import { limitEventSize } from "./limit-event-size.ts";
import type { ClientMessage } from "./definition.ts";

export interface Denied {
  tool: string;
  message?: string;
}

/** Writes a client's messages to the log. */
export interface EventWriter {
  /** Stores the message. `raw` is the original message, kept with the event. Returns false if nothing was stored. */
  write(said: ClientMessage, raw?: unknown): Promise<boolean>;
  /** The last denied tool, if no later tool call succeeded. */
  denied(): Denied | null;
  /** The client's own session id; null if it never reported one. */
  session(): string | null;
}

export function createEventWriter(context: RunContext): EventWriter {
  let denied: Denied | null = null;
  let session: string | null = null;

  const eventOf = (said: ClientMessage): RunEvent | null => {
    switch (said.type) {
      case "session":
        if (said.id === session) return null;
        session = said.id;
        return { type: "system", subtype: "init", executor_session_id: said.id, data: said.data };
      case "partial":
        context.partial({ kind: "assistant", text: said.text });
        return null;
      case "usage":
        context.usage(said.usage);
        return null;
      case "denied": {
        const { type: _type, ...data } = said;
        denied = data;
        return { type: "system", subtype: "permission_denied", data };
      }
      case "tool_result":
        if (!said.is_error) denied = null;
        return said;
      case "system":
      case "assistant":
      case "tool_use":
      case "error":
        return said;
      default: {
        const unknown: never = said;
        throw new TypeError(`Unknown client message: ${JSON.stringify(unknown)}`);
      }
    }
  };

  return {
    async write(said, raw) {
      const event = eventOf(said);
      if (event === null) return false;
      await context.emit(limitEventSize(raw === undefined ? event : { ...event, raw }));
      return true;
    },
    denied: () => denied,
    session: () => session,
  };
}
