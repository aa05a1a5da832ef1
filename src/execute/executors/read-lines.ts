import type { Readable } from "node:stream";

export interface Line {
  text: string;
  /** False if the line was too long; `text` is then its start. */
  isComplete: boolean;
}

/** Reads lines in bounded memory: keeps only the start of an overlong line, and skips empty lines. */
export async function* readLines(stream: Readable | null, maxBytes: number): AsyncGenerator<Line> {
  if (stream === null) return;
  let parts: Uint8Array[] = [];
  let bytes = 0;
  const append = (part: Uint8Array): void => {
    if (bytes < maxBytes) parts.push(part.subarray(0, maxBytes - bytes));
    bytes += part.length;
  };
  const takeLine = (): Line => {
    const line = { text: Buffer.concat(parts).toString("utf8"), isComplete: bytes <= maxBytes };
    parts = [];
    bytes = 0;
    return line;
  };
  for await (const chunk of stream) {
    let rest = chunk as Uint8Array; // No encoding is set, so chunks are bytes.
    for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
      append(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
      const line = takeLine();
      if (line.text.trim() !== "") yield line;
    }
    append(rest);
  }
  const last = takeLine();
  if (last.text.trim() !== "") yield last;
}
