import { isUtf8 } from "node:buffer";
import type { RunEvent } from "../model/event.ts";
import type { OutputStream, Redactor, RedactStream } from "../model/process.ts";

export type OutputEvent = Extract<RunEvent, { type: "output" }>;

/** Output on its way into the log: redacted across the pieces it comes in, and joined to fewer of them. */
export interface OutputEvents {
  push(event: OutputEvent): void;
  /** Writes what is certain now. */
  flush(): void;
  /** Also what was held back in case a secret began there. */
  end(): void;
}

const eventBytes = 64 * 1024;

export function createOutputEvents(options: {
  redactor: Redactor;
  write: (event: OutputEvent) => void;
  delayMs: number;
}): OutputEvents {
  const redacting: Record<OutputStream, RedactStream | null> = { stdout: null, stderr: null };
  const partial: Record<OutputStream, Uint8Array> = { stdout: empty, stderr: empty };
  let pieces: { stream: OutputStream; chunks: Uint8Array[] }[] = [];
  let pending = 0;
  let timer: NodeJS.Timeout | null = null;

  const keep = (stream: OutputStream, bytes: Uint8Array): void => {
    if (bytes.length === 0) return;
    pending += bytes.length;
    const open = pieces.at(-1);
    if (open?.stream === stream) open.chunks.push(bytes);
    else pieces.push({ stream, chunks: [bytes] });
    if (pending >= eventBytes) flush();
    else timer ??= setTimeout(flush, options.delayMs);
  };
  const flush = (): void => {
    if (timer) clearTimeout(timer);
    timer = null;
    pending = 0;
    const ready = pieces;
    pieces = [];
    for (const { stream, chunks } of ready) {
      const bytes = Buffer.concat([partial[stream], ...chunks]);
      const cut = completeCharacters(bytes);
      // a copy: a view would keep the whole piece alive
      partial[stream] = Uint8Array.from(bytes.subarray(cut));
      for (const event of toEvents(stream, bytes.subarray(0, cut))) options.write(event);
    }
  };

  return {
    push(event) {
      const { stream } = event;
      if (event.skipped !== undefined) {
        flush();
        options.write({ type: "output", stream, text: "", skipped: event.skipped });
      }
      const bytes =
        event.text === undefined ? Buffer.from(event.base64 ?? "", "base64") : Buffer.from(event.text, "utf8");
      redacting[stream] ??= options.redactor.stream();
      keep(stream, redacting[stream].push(bytes));
    },
    flush,
    end() {
      for (const stream of ["stdout", "stderr"] as const) {
        const rest = redacting[stream]?.end();
        redacting[stream] = null;
        if (rest) keep(stream, rest);
      }
      flush();
      for (const stream of ["stdout", "stderr"] as const) {
        for (const event of toEvents(stream, partial[stream])) options.write(event);
        partial[stream] = empty;
      }
    },
  };
}

const empty = new Uint8Array(0);

function* toEvents(stream: OutputStream, bytes: Uint8Array): Generator<OutputEvent> {
  for (let at = 0; at < bytes.length;) {
    const slice = bytes.subarray(at, at + eventBytes);
    const part =
      at + slice.length === bytes.length ? slice : slice.subarray(0, completeCharacters(slice) || slice.length);
    const buffer = Buffer.from(part.buffer, part.byteOffset, part.length);
    yield {
      type: "output",
      stream,
      ...(isUtf8(part) ? { text: buffer.toString("utf8") } : { base64: buffer.toString("base64") }),
    };
    at += part.length;
  }
}

/** A chunk of a pipe as events, for executors: a character cut at its end waits for the next chunk. */
export function createChunkReader(stream: OutputStream): {
  push(chunk: Uint8Array): OutputEvent[];
  end(): OutputEvent[];
} {
  let rest: Uint8Array = empty;
  return {
    push(chunk) {
      const bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
      const cut = completeCharacters(bytes);
      rest = Uint8Array.from(bytes.subarray(cut));
      return [...toEvents(stream, bytes.subarray(0, cut))];
    },
    end() {
      return [...toEvents(stream, rest)];
    },
  };
}

/** The length without an incomplete UTF-8 character at the end. */
function completeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(4, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return bytes.length;
    if (byte >= 0xc0) return (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
