import type { RunEvent } from "../../../model/event.ts";
import type { RunContext } from "../../../model/executor.ts";
import { limitEventSize } from "./limit-event-size.ts";
import type { ClientMessage } from "./definition.ts";

export interface Denial {
  tool: string;
  message?: string;
}

/** Writes a client's messages to the log. */
export interface EventWriter {
  /** Stores the message. `raw` is the original message, kept with the event. Returns false if nothing was stored. */
  write(message: ClientMessage, raw?: unknown): Promise<boolean>;
  /** The last denied tool, if no later tool call succeeded. */
  getDenial(): Denial | null;
  /** The client's own session id; null if it never reported one. */
  getSession(): string | null;
}

export function createEventWriter(context: RunContext): EventWriter {
  let lastDenial: Denial | null = null;
  let session: string | null = null;

  const toEvent = (message: ClientMessage): RunEvent | null => {
    switch (message.type) {
      case "session":
        if (message.id === session) return null;
        session = message.id;
        return { type: "system", subtype: "init", executor_session_id: message.id, data: message.data };
      case "partial":
        context.partial({ kind: "assistant", text: message.text });
        return null;
      case "usage":
        context.usage(message.usage);
        return null;
      case "denied": {
        const { type: _type, ...data } = message;
        lastDenial = data;
        return { type: "system", subtype: "permission_denied", data };
      }
      case "tool_result":
        if (!message.is_error) lastDenial = null;
        return message;
      case "system":
      case "assistant":
      case "tool_use":
      case "error":
        return message;
      default: {
        const unknown: never = message;
        throw new TypeError(`Unknown client message: ${JSON.stringify(unknown)}`);
      }
    }
  };

  return {
    async write(message, raw) {
      const event = toEvent(message);
      if (event === null) return false;
      await context.emit(limitEventSize(raw === undefined ? event : { ...event, raw }));
      return true;
    },
    getDenial: () => lastDenial,
    getSession: () => session,
  };
}
