import type { Redactor } from "../../../model/process.ts";
import { keepEnds } from "../../../process/keep.ts";

/** What a command printed, as its run's result. */
export interface ResultReader {
  push(chunk: Uint8Array): void;
  take(): { text: string; data: { value: unknown } | null; jsonTooLong: boolean };
}

/**
 * `text` is redacted before it is cut, so that half a secret is never kept. `data` is parsed from the whole
 * output where it is JSON and not longer than `maxDataBytes`; what does not even begin like JSON is not kept for that.
 */
export function createResultReader(options: {
  maxTextBytes: number;
  maxDataBytes: number;
  redactor: Redactor;
}): ResultReader {
  const kept = keepEnds(options.maxTextBytes);
  const redacting = options.redactor.stream();
  let whole: Uint8Array[] = [];
  let bytes = 0;
  let mayBeJson = true;
  let looksStructured = false;
  return {
    push(chunk) {
      kept.push(redacting.push(chunk));
      bytes += chunk.length;
      if (!mayBeJson) return;
      if (bytes <= options.maxDataBytes) whole.push(chunk);
      else whole = [];
      if (bytes === chunk.length) {
        const first = firstCharacter(chunk);
        // a first chunk of blanks tells nothing yet
        mayBeJson = first === "" || '{["-0123456789tfn'.includes(first);
        looksStructured = first === "{" || first === "[";
      }
      if (!mayBeJson) whole = [];
    },
    take() {
      kept.push(redacting.end());
      const { head, tail, totalBytes, truncated } = kept.take();
      const missing = totalBytes - head.length - tail.length;
      const text = truncated ? `${decode(head)}\n[... ${missing} bytes not kept ...]\n${decode(tail)}` : decode(head);
      const tooLong = bytes > options.maxDataBytes;
      return {
        text,
        data: tooLong || !mayBeJson ? null : parse(decode(Buffer.concat(whole))),
        jsonTooLong: tooLong && looksStructured,
      };
    },
  };
}

function firstCharacter(chunk: Uint8Array): string {
  const first = chunk.find((byte) => byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09);
  return first === undefined ? "" : String.fromCharCode(first);
}

function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}

function parse(text: string): { value: unknown } | null {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
