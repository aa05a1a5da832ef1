import type { RunEvent } from "../../../model/event.ts";
import type { RunContext } from "../../../model/executor.ts";
import { bounded } from "./bounded.ts";
import type { Said } from "./definition.ts";

export interface Denied {
  tool: string;
  message?: string;
}

/** What a client says, on its way into the log. */
export interface EventWriter {
  /** `raw`: the whole message, kept with the event. False where nothing was stored. */
  write(said: Said, raw?: unknown): Promise<boolean>;
  /** The last tool it was denied, where nothing it tried after that succeeded. */
  denied(): Denied | null;
  /** The client's own id of the session; null: it never said one. */
  session(): string | null;
}

export function createEventWriter(context: RunContext): EventWriter {
  let denied: Denied | null = null;
  let session: string | null = null;

  const eventOf = (said: Said): RunEvent | null => {
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
        throw new TypeError(`A reader said something unknown: ${JSON.stringify(unknown)}`);
      }
    }
  };

  return {
    async write(said, raw) {
      const event = eventOf(said);
      if (event === null) return false;
      await context.emit(bounded(raw === undefined ? event : { ...event, raw }));
      return true;
    },
    denied: () => denied,
    session: () => session,
  };
}
