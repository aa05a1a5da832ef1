import type { NumberedEvent, RunEvent } from "./event.ts";
import { findExceededLimit } from "./json-limits.ts";

/** Of one event, as JSON: what a coordinator keeps and a reader gets in one piece. */
export const maxEventLength = 1024 * 1024;
/** In the body of a report an event is some levels deeper. */
const heaviestEvent = { depth: 56, values: 100_000, names: 5000 };
/** Smaller ones cost little, whatever they are made of. */
const unweighed = 16 * 1024;
/** Of a text that is cut: as JSON it may be six times as long. */
const cutLength = 128 * 1024;

/** Takes the JSON of an event, or its line in a log. */
export function isEventTooLarge({ type }: RunEvent, json: string): boolean {
  if (json.length > maxEventLength) return true;
  // two thirds of all events, and flat
  return type !== "output" && findExceededLimit(Buffer.from(json), heaviestEvent) !== null;
}

/** Says in its place what was left out. */
function tooLargeEvent({ type }: RunEvent): RunEvent {
  const message = `An event of type ${type} was larger than ${maxEventLength} characters, or too intricate, and was left out.`;
  return { type: "error", code: "event_too_large", message };
}

/** What fits of an event that is too large, marked as truncated; or that it was left out. */
export function shortenEvent(event: RunEvent): RunEvent {
  for (const shorter of [withoutRaw(event), withTextsCut(event)])
    if (shorter !== null && !isEventTooLarge(shorter, JSON.stringify(shorter))) return shorter;
  return tooLargeEvent(event);
}

/** The same of one that somebody else has made. */
export function boundEvent(numbered: NumberedEvent): NumberedEvent {
  const { event } = numbered;
  // What a report may hold bounds the depth; as JSON a text may be six times as long.
  const size = estimateJsonSize(event, maxEventLength);
  if (size <= unweighed) return numbered;
  if (size > maxEventLength) return { ...numbered, event: tooLargeEvent(event) };
  const json = JSON.stringify(event);
  return isEventTooLarge(event, json) ? { ...numbered, event: tooLargeEvent(event) } : numbered;
}

/** About how long a value is as JSON, without making any; not looked at further once it is past `enough`. */
export function estimateJsonSize(root: unknown, enough = Infinity): number {
  let size = 0;
  const waiting: unknown[] = [root];
  while (waiting.length > 0 && size <= enough) {
    const value = waiting.pop();
    size += typeof value === "string" ? value.length + 3 : 6;
    if (typeof value !== "object" || value === null) continue;
    // members that are not looked at any more are not gathered either
    if (Array.isArray(value) && size + value.length > enough) return size + value.length;
    if (Array.isArray(value)) {
      for (const inner of value as unknown[]) waiting.push(inner);
      continue;
    }
    for (const [key, inner] of Object.entries(value)) {
      size += key.length + 3;
      waiting.push(inner);
    }
  }
  return size;
}

function withoutRaw(event: RunEvent): RunEvent | null {
  if (!("raw" in event)) return null;
  const { raw: _raw, ...rest } = event;
  return { ...rest, truncated: true };
}

function withTextsCut(given: RunEvent): RunEvent | null {
  const event = withoutRaw(given) ?? given;
  switch (event.type) {
    case "assistant":
      return { ...event, text: head(event.text), truncated: true };
    case "error":
      return { ...event, message: head(event.message), truncated: true };
    case "system":
      return { ...event, data: headOf(event.data), truncated: true };
    case "tool_use":
      return { ...event, input: headOf(event.input), truncated: true };
    case "tool_result":
      return { ...event, output: headOf(event.output), truncated: true };
    case "execution_started": {
      const { command, argv } = event.execution;
      const execution = { ...event.execution, command: head(command), argv: firstOf(argv), truncated: true as const };
      return { ...event, execution };
    }
    default:
      return null;
  }
}

/** Of data that is too large only its text is kept, from the beginning. */
function headOf(value: unknown): string {
  return head(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
}

function head(text: string): string {
  // not in the middle of a pair of surrogates
  return text.slice(0, cutLength).replace(/[\ud800-\udbff]$/, "");
}

function firstOf(argv: readonly string[]): string[] {
  const kept: string[] = [];
  let left = cutLength;
  for (const word of argv) {
    if (left <= 0 || kept.length >= 1000) break;
    kept.push(word.length <= left ? word : head(word.slice(0, left)));
    left -= word.length;
  }
  return kept;
}
