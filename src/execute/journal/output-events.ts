import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import type { RunContext } from "../../model/executor.ts";
import type { OutputEvent } from "../../model/output.ts";
import type { OutputStream, Redactor, RedactStream } from "../../model/process.ts";
import { keepTail, findWholeEnd, findWholeStart } from "../../process/keep-ends.ts";

/** Turns output into events. Redacts it across chunks and joins chunks into fewer events. */
export interface OutputEvents {
  push(stream: OutputStream, chunk: Uint8Array): void;
  /** Records that this many bytes of the stream were lost before they arrived. */
  skip(stream: OutputStream, bytes: number): void;
  /** Writes buffered output, except the start of a possible secret or half a character. */
  flush(): void;
  /** Writes everything. Output that follows is treated as a new stream. */
  end(): void;
}

export interface OutputOptions {
  redactor: Redactor;
  write: (event: OutputEvent) => void;
  /** How long output is buffered, to join it into fewer events. */
  delayMs: number;
  /** Keeps this much of each stream, half from its head and half from its tail. Unlimited by default. */
  maxBytes?: number;
}

const maxEventBytes = 64 * 1024;
const empty = new Uint8Array(0);
const streamNames = ["stdout", "stderr"] as const;

/** Redacts before truncating, so that no part of a secret remains where the output is split. */
export function createOutputEvents({ redactor, write, delayMs, maxBytes = Infinity }: OutputOptions): OutputEvents {
  const maxHalfBytes = Math.ceil(maxBytes / 2);
  const openStream = () => ({
    redaction: null as RedactStream | null,
    partial: empty as Uint8Array,
    head: 0,
    bytesAfterHead: 0,
    tail: keepTail(maxHalfBytes),
  });
  const streams = { stdout: openStream(), stderr: openStream() };
  let pieces: { name: OutputStream; chunks: Uint8Array[] }[] = [];
  let pendingBytes = 0;
  let timer: NodeJS.Timeout | null = null;

  const enqueue = (name: OutputStream, bytes: Uint8Array): void => {
    if (bytes.length === 0) return;
    pendingBytes += bytes.length;
    const last = pieces.at(-1);
    if (last?.name === name) last.chunks.push(bytes);
    else pieces.push({ name, chunks: [bytes] });
    if (pendingBytes >= maxEventBytes) flush();
    else timer ??= setTimeout(flush, delayMs);
  };
  const appendRedacted = (name: OutputStream, redacted: Uint8Array): void => {
    const stream = streams[name];
    const headBytes = Math.min(redacted.length, maxHalfBytes - stream.head);
    stream.head += headBytes;
    enqueue(name, redacted.subarray(0, headBytes));
    if (headBytes === redacted.length) return;
    stream.bytesAfterHead += redacted.length - headBytes;
    stream.tail.push(redacted.subarray(headBytes));
  };
  const flush = (): void => {
    if (timer) clearTimeout(timer);
    timer = null;
    pendingBytes = 0;
    const queued = pieces;
    pieces = [];
    for (const { name, chunks } of queued) {
      const bytes = Buffer.concat([streams[name].partial, ...chunks]);
      const end = findWholeEnd(bytes);
      // Copied, because a view would keep the whole buffer in memory.
      streams[name].partial = Uint8Array.from(bytes.subarray(end));
      for (const event of toOutputEvents(name, bytes.subarray(0, end))) write(event);
    }
  };

  return {
    push(name, chunk) {
      const stream = streams[name];
      stream.redaction ??= redactor.stream();
      appendRedacted(name, stream.redaction.push(chunk));
    },
    skip(name, bytes) {
      flush();
      write({ type: "output", stream: name, text: "", skipped: bytes });
    },
    flush,
    end() {
      for (const name of streamNames) {
        const { redaction } = streams[name];
        if (redaction) appendRedacted(name, redaction.end());
      }
      flush();
      for (const name of streamNames) {
        const { partial, bytesAfterHead, tail } = streams[name];
        streams[name] = openStream();
        const tailBytes = tail.bytes();
        const skipped = bytesAfterHead - tailBytes.length;
        const joined = skipped > 0 ? partial : Buffer.concat([partial, tailBytes]);
        for (const event of toOutputEvents(name, joined)) write(event);
        if (skipped === 0) continue;
        const start = findWholeStart(tailBytes);
        const [first, ...rest] = toOutputEvents(name, tailBytes.subarray(start));
        write({ type: "output", stream: name, text: "", ...first, skipped: skipped + start });
        for (const event of rest) write(event);
      }
    },
  };
}

/** Splits a chunk into events. One that ends in half a character is sent as base64 and becomes text again in the record. */
function* toOutputEvents(stream: OutputStream, bytes: Uint8Array): Generator<OutputEvent> {
  for (let offset = 0; offset < bytes.length;) {
    const slice = bytes.subarray(offset, offset + maxEventBytes);
    const part =
      offset + slice.length === bytes.length ? slice : slice.subarray(0, findWholeEnd(slice) || slice.length);
    const buffer = Buffer.from(part.buffer, part.byteOffset, part.length);
    yield {
      type: "output",
      stream,
      ...(isUtf8(part) ? { text: buffer.toString("utf8") } : { base64: buffer.toString("base64") }),
    };
    offset += part.length;
  }
}

/** Emits a process's output as it arrives, and pushes it to each of `sinks`. */
export async function emitOutput(
  stream: Readable | null,
  name: OutputStream,
  emit: RunContext["emit"],
  ...sinks: { push(bytes: Uint8Array): void }[]
): Promise<void> {
  if (stream === null) return;
  for await (const chunk of stream) {
    const bytes = chunk as Uint8Array; // No encoding is set, so chunks are bytes.
    for (const sink of sinks) sink.push(bytes);
    for (const event of toOutputEvents(name, bytes)) await emit(event);
  }
}
