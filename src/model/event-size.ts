import type { NumberedEvent, RunEvent } from "./event.ts";
import { findExceededLimit } from "./json-limits.ts";

/** Maximum length of one event as JSON. Coordinators store events, and readers receive them, in one piece. */
export const maxEventLength = 1024 * 1024;
/** The depth limit is lower than for a request, because a report nests its events a few levels deep. */
const eventLimits = { depth: 56, values: 100_000, names: 5000 };
/** Events up to this length are cheap to process, whatever they contain. */
const maxUncheckedLength = 16 * 1024;
/** Length of truncated text. Escaped as JSON, it can be six times as long. */
const maxTextLength = 128 * 1024;

/** `json` is the event as JSON, or its line in a log. */
export function isEventTooLarge({ type }: RunEvent, json: string): boolean {
  if (json.length > maxEventLength) return true;
  // Skip the scan for output events: they are flat, and two thirds of all events.
  return type !== "output" && findExceededLimit(Buffer.from(json), eventLimits) !== null;
}

/** The replacement for an event that was dropped. */
function createTooLargeEvent({ type }: RunEvent): RunEvent {
  const message = `An event of type ${type} was larger than ${maxEventLength} characters, or too complex, and was dropped.`;
  return { type: "error", code: "event_too_large", message };
}

/** Truncates an event that is too large, or replaces it if truncating does not help. */
export function truncateEvent(event: RunEvent): RunEvent {
  for (const candidate of [dropRaw(event), truncateTexts(event)])
    if (candidate !== null && !isEventTooLarge(candidate, JSON.stringify(candidate))) return candidate;
  return createTooLargeEvent(event);
}

/** Replaces an event from another process if it is too large. */
export function replaceLargeEvent(numbered: NumberedEvent): NumberedEvent {
  const { event } = numbered;
  // The limits of a report already bound the depth. Escaped as JSON, text can be six times as long as estimated.
  const size = estimateJsonSize(event, maxEventLength);
  if (size <= maxUncheckedLength) return numbered;
  if (size > maxEventLength) return { ...numbered, event: createTooLargeEvent(event) };
  const json = JSON.stringify(event);
  return isEventTooLarge(event, json) ? { ...numbered, event: createTooLargeEvent(event) } : numbered;
}

/** Estimates the length of a value as JSON without serializing it. Stops counting once the estimate exceeds `max`. */
export function estimateJsonSize(root: unknown, max = Infinity): number {
  let size = 0;
  const pending: unknown[] = [root];
  while (pending.length > 0 && size <= max) {
    const value = pending.pop();
    size += typeof value === "string" ? value.length + 3 : 6;
    if (typeof value !== "object" || value === null) continue;
    // Do not copy a list whose length alone exceeds the limit.
    if (Array.isArray(value) && size + value.length > max) return size + value.length;
    if (Array.isArray(value)) {
      for (const inner of value as unknown[]) pending.push(inner);
      continue;
    }
    for (const [key, inner] of Object.entries(value)) {
      size += key.length + 3;
      pending.push(inner);
    }
  }
  return size;
}

function dropRaw(event: RunEvent): RunEvent | null {
  if (!("raw" in event)) return null;
  const { raw: _raw, ...rest } = event;
  return { ...rest, truncated: true };
}

function truncateTexts(original: RunEvent): RunEvent | null {
  const event = dropRaw(original) ?? original;
  switch (event.type) {
    case "assistant":
      return { ...event, text: truncate(event.text), truncated: true };
    case "error":
      return { ...event, message: truncate(event.message), truncated: true };
    case "system":
      return { ...event, data: toExcerpt(event.data), truncated: true };
    case "tool_use":
      return { ...event, input: toExcerpt(event.input), truncated: true };
    case "tool_result":
      return { ...event, output: toExcerpt(event.output), truncated: true };
    case "execution_started": {
      const { command, argv } = event.execution;
      const execution = {
        ...event.execution,
        command: truncate(command),
        argv: truncateArguments(argv),
        truncated: true as const,
      };
      return { ...event, execution };
    }
    default:
      return null;
  }
}

/** Keeps the beginning of a value's text or JSON. */
function toExcerpt(value: unknown): string {
  return truncate(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
}

function truncate(text: string): string {
  // Do not end with half of a surrogate pair.
  return text.slice(0, maxTextLength).replace(/[\ud800-\udbff]$/, "");
}

function truncateArguments(argv: readonly string[]): string[] {
  const kept: string[] = [];
  let remaining = maxTextLength;
  for (const word of argv) {
    if (remaining <= 0 || kept.length >= 1000) break;
    kept.push(word.length <= remaining ? word : truncate(word.slice(0, remaining)));
    remaining -= word.length;
  }
  return kept;
}
