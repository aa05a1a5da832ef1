import { findInexactNumber } from "../../../model/exact-numbers.ts";
import { formatSkippedNote } from "../../../model/output.ts";
import type { Redactor } from "../../../model/process.ts";
import { keepEnds } from "../../../process/keep-ends.ts";

/** Collects a command's output and turns it into the run's result. */
export interface ResultReader {
  push(chunk: Uint8Array): void;
  /** `missingData` says why output that looks like JSON has no data. It is null otherwise. */
  take(): { text: string; data: { value: unknown } | null; missingData: MissingData | null };
}

export interface MissingData {
  code: "result_truncated" | "result_inexact";
  message: string;
}

const closingCharacters: Readonly<Record<string, string>> = { "{": "}", "[": "]", '"': '"' };

/**
 * `text` is redacted before it is truncated, so that half a secret is never kept. `data` is parsed from the whole
 * output if it is JSON of at most `maxDataBytes`. Output that does not start like JSON is not buffered.
 */
export function createResultReader(options: {
  maxTextBytes: number;
  maxDataBytes: number;
  redactor: Redactor;
}): ResultReader {
  const endsBuffer = keepEnds(options.maxTextBytes);
  const redactStream = options.redactor.stream();
  let chunks: Uint8Array[] = [];
  let bytes = 0;
  let first = "";
  let last = "";
  const canBeJson = (): boolean => first === "" || '{["-0123456789tfn'.includes(first);
  return {
    push(chunk) {
      endsBuffer.push(redactStream.push(chunk));
      bytes += chunk.length;
      if (!canBeJson()) return;
      first ||= toCharacter(chunk.find(isNotBlank));
      last = toCharacter(chunk.findLast(isNotBlank)) || last;
      if (bytes <= options.maxDataBytes && canBeJson()) chunks.push(chunk);
      else chunks = [];
    },
    take() {
      endsBuffer.push(redactStream.end());
      const { head, tail, totalBytes, truncated } = endsBuffer.result();
      const skippedBytes = totalBytes - head.length - tail.length;
      const text = truncated ? `${decode(head)}${formatSkippedNote(skippedBytes)}${decode(tail)}` : decode(head);
      if (bytes > options.maxDataBytes) {
        const message = `The output is JSON of ${bytes} bytes, which is too large for result_data: the limit is ${options.maxDataBytes} bytes`;
        const missingData: MissingData = { code: "result_truncated", message };
        return { text, data: null, missingData: closingCharacters[first] === last ? missingData : null };
      }
      if (!canBeJson()) return { text, data: null, missingData: null };
      return { text, ...parse(decode(Buffer.concat(chunks))) };
    },
  };
}

function isNotBlank(byte: number): boolean {
  return byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09;
}

function toCharacter(byte: number | undefined): string {
  return byte === undefined ? "" : String.fromCharCode(byte);
}

function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}

function parse(text: string): Pick<ReturnType<ResultReader["take"]>, "data" | "missingData"> {
  try {
    const value: unknown = JSON.parse(text);
    const inexactNumber = findInexactNumber(text);
    if (inexactNumber === null) return { data: { value }, missingData: null };
    const location = inexactNumber.path.length === 0 ? "" : ` at ${inexactNumber.path.join(".")}`;
    const message = `The output contains the number ${inexactNumber.text.slice(0, 100)}${location}, which result_data cannot hold exactly: print it as a string`;
    return { data: null, missingData: { code: "result_inexact", message } };
  } catch (error) {
    if (error instanceof SyntaxError) return { data: null, missingData: null };
    throw error;
  }
}
