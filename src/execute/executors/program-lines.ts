import type { RunEvent } from "../../model/event.ts";
import { type ParkedOutcome, parkReasons } from "../../model/executor.ts";
import { loadEventParser } from "./parse-event.ts";

/** A line that a program can print: an event, `save` or `parked`. */
export type ProgramLine =
  | RunEvent
  | { type: "save"; state: unknown }
  | ({ type: "parked" } & Omit<ParkedOutcome, "status">);

/** Returns the parsed line, or a message that describes why it is invalid. */
export type ParseLine = (value: unknown) => ProgramLine | string;

export async function loadLineParser(): Promise<ParseLine> {
  const parseEvent = await loadEventParser();
  const z = await import("zod");
  const save = z.object({ type: z.literal("save"), state: z.unknown() });
  const parked = z.object({
    type: z.literal("parked"),
    why: z.enum(parkReasons),
    until: z.iso.datetime({ offset: true }).exactOptional(),
    message: z.string().exactOptional(),
  });
  return (value) => {
    const type: unknown = typeof value === "object" && value !== null ? Reflect.get(value, "type") : undefined;
    if (type !== "save" && type !== "parked") return parseEvent(value);
    const parsed = (type === "save" ? save : parked).safeParse(value);
    if (parsed.success) return parsed.data;
    return `${type}: ${parsed.error.issues.map(({ path, message }) => `${path.map(String).join(".")}: ${message}`).join("; ")}`;
  };
}

export function toParked({ why, until, message }: Omit<ParkedOutcome, "status">): ParkedOutcome {
  return {
    status: "parked",
    why,
    ...(until === undefined ? {} : { until: new Date(until).toISOString() }),
    ...(message === undefined ? {} : { message }),
  };
}
