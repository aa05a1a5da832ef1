import type { RunEvent } from "./event.ts";

export type OutputEvent = Extract<RunEvent, { type: "output" }>;

/** The bytes of an output event, without a mark for skipped bytes. */
export function outputBytes({ text, base64 }: OutputEvent): Buffer {
  return text === undefined ? Buffer.from(base64 ?? "", "base64") : Buffer.from(text, "utf8");
}

/** The bytes of an output event for display, preceded by a mark if bytes were skipped. */
export function displayBytes(event: OutputEvent): Buffer {
  const bytes = outputBytes(event);
  return event.skipped ? Buffer.concat([Buffer.from(skippedMark(event.skipped)), bytes]) : bytes;
}

export function skippedMark(bytes: number): string {
  return `\n[... ${bytes} bytes not kept ...]\n`;
}
