import type { RunEvent } from "../../model/event.ts";
import { suggest } from "../../model/suggest.ts";

/** Parses an event from a third-party executor. Returns the event, or a message that describes why it is invalid. */
export type ParseEvent = (value: unknown) => RunEvent | string;

/** Loads the schemas on demand, because most runners have no third-party executors. */
export async function loadEventParser(): Promise<ParseEvent> {
  const { runEventSchema } = await import("../../model/event.ts");
  const types = runEventSchema.options.map(({ shape }) => shape.type.value);
  return (value) => {
    const parsed = runEventSchema.safeParse(value);
    return parsed.success ? parsed.data : describe(value, parsed.error.issues, types);
  };
}

interface Issue {
  path: readonly PropertyKey[];
  message: string;
}

/** Returns, for example, `tool_use: tool_use_id: expected string, received undefined`. */
function describe(value: unknown, issues: readonly Issue[], types: readonly string[]): string {
  if (typeof value !== "object" || value === null) return "an event must be an object";
  const type: unknown = Reflect.get(value, "type");
  if (typeof type !== "string") return "an event must have a `type`, which must be a string";
  if (!types.includes(type)) {
    const suggestion = suggest(type, types);
    return `unknown event type ${JSON.stringify(type.slice(0, 100))}${suggestion === undefined ? "" : `; did you mean ${suggestion}?`}`;
  }
  return `${type}: ${issues.map(({ path, message }) => `${path.map(String).join(".")}: ${describeIssue(message)}`).join("; ")}`;
}

function describeIssue(message: string): string {
  // This is zod's message for a missing field that accepts any value.
  if (message.includes("expected nonoptional")) return "is missing";
  return message.replace(/^Invalid input: /, "");
}
