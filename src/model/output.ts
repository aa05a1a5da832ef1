import type { RunEvent } from "./event.ts";

export type OutputEvent = Extract<RunEvent, { type: "output" }>;

/** The bytes of an output event, without a note about skipped bytes. */
export function getOutputBytes({ text, base64 }: OutputEvent): Buffer {
  return text === undefined ? Buffer.from(base64 ?? "", "base64") : Buffer.from(text, "utf8");
}

/** The bytes of an output event for display, preceded by a note if bytes were skipped. */
export function getDisplayBytes(event: OutputEvent): Buffer {
  const bytes = getOutputBytes(event);
  return event.skipped ? Buffer.concat([Buffer.from(formatSkippedNote(event.skipped)), bytes]) : bytes;
}

export function formatSkippedNote(bytes: number): string {
  return `\n[... ${bytes} bytes not kept ...]\n`;
}
