import { findInexactNumber } from "../../../model/exact-numbers.ts";
import { skippedMark } from "../../../model/output.ts";
import type { Redactor } from "../../../model/process.ts";
import { keepEnds } from "../../../process/keep-ends.ts";

/** Collects what a command prints and turns it into the run's result. */
export interface ResultReader {
  push(chunk: Uint8Array): void;
  /** `withheld` says why output that looks like JSON has no data; null otherwise. */
  take(): { text: string; data: { value: unknown } | null; withheld: Withheld | null };
}

export interface Withheld {
  code: "result_truncated" | "result_inexact";
  message: string;
}

const closing: Readonly<Record<string, string>> = { "{": "}", "[": "]", '"': '"' };

/**
 * `text` is redacted before it is truncated, so that half a secret is never kept. `data` is parsed from the whole output
 * if it is JSON of at most `maxDataBytes`. Output that does not start like JSON is not buffered for this.
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
  let first = "";
  let last = "";
  const mayBeJson = (): boolean => first === "" || '{["-0123456789tfn'.includes(first);
  return {
    push(chunk) {
      kept.push(redacting.push(chunk));
      bytes += chunk.length;
      if (!mayBeJson()) return;
      first ||= characterIn(chunk.find(isNotBlank));
      last = characterIn(chunk.findLast(isNotBlank)) || last;
      if (bytes <= options.maxDataBytes && mayBeJson()) whole.push(chunk);
      else whole = [];
    },
    take() {
      kept.push(redacting.end());
      const { head, tail, totalBytes, truncated } = kept.take();
      const missing = totalBytes - head.length - tail.length;
      const text = truncated ? `${decode(head)}${skippedMark(missing)}${decode(tail)}` : decode(head);
      if (bytes > options.maxDataBytes) {
        const message = `The output is JSON of ${bytes} bytes, which is too large: at most ${options.maxDataBytes} bytes become result_data`;
        const withheld: Withheld = { code: "result_truncated", message };
        return { text, data: null, withheld: closing[first] === last ? withheld : null };
      }
      if (!mayBeJson()) return { text, data: null, withheld: null };
      return { text, ...parse(decode(Buffer.concat(whole))) };
    },
  };
}

function isNotBlank(byte: number): boolean {
  return byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09;
}

function characterIn(byte: number | undefined): string {
  return byte === undefined ? "" : String.fromCharCode(byte);
}

function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}

function parse(text: string): Pick<ReturnType<ResultReader["take"]>, "data" | "withheld"> {
  try {
    const value: unknown = JSON.parse(text);
    const inexact = findInexactNumber(text);
    if (inexact === null) return { data: { value }, withheld: null };
    const where = inexact.path.length === 0 ? "" : ` at ${inexact.path.join(".")}`;
    const message = `The output has the number ${inexact.text.slice(0, 100)}${where}, which result_data cannot hold exactly: print it as a string`;
    return { data: null, withheld: { code: "result_inexact", message } };
  } catch (error) {
    if (error instanceof SyntaxError) return { data: null, withheld: null };
    throw error;
  }
}
