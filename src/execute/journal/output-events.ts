import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import type { RunContext } from "../../model/executor.ts";
import type { OutputEvent } from "../../model/output.ts";
import type { OutputStream, Redactor, RedactStream } from "../../model/process.ts";
import { keepTail, findWholeEnd, findWholeStart } from "../../process/keep-ends.ts";

/** Turns output into events. Redacts it across chunks and joins chunks into fewer events. */
export interface OutputEvents {
  push(stream: OutputStream, chunk: Uint8Array): void;
  /** Records that `bytes` of the stream were lost before they got here. */
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

const eventBytes = 64 * 1024;
const empty = new Uint8Array(0);
const names = ["stdout", "stderr"] as const;

/** Redacts before truncating, so that no part of a secret remains at the cut. */
export function createOutputEvents({ redactor, write, delayMs, maxBytes = Infinity }: OutputOptions): OutputEvents {
  const half = Math.ceil(maxBytes / 2);
  const open = () => ({
    redacting: null as RedactStream | null,
    partial: empty as Uint8Array,
    head: 0,
    behindHead: 0,
    tail: keepTail(half),
  });
  const streams = { stdout: open(), stderr: open() };
  let pieces: { name: OutputStream; chunks: Uint8Array[] }[] = [];
  let pending = 0;
  let timer: NodeJS.Timeout | null = null;

  const add = (name: OutputStream, bytes: Uint8Array): void => {
    if (bytes.length === 0) return;
    pending += bytes.length;
    const last = pieces.at(-1);
    if (last?.name === name) last.chunks.push(bytes);
    else pieces.push({ name, chunks: [bytes] });
    if (pending >= eventBytes) flush();
    else timer ??= setTimeout(flush, delayMs);
  };
  const keep = (name: OutputStream, redacted: Uint8Array): void => {
    const stream = streams[name];
    const forHead = Math.min(redacted.length, half - stream.head);
    stream.head += forHead;
    add(name, redacted.subarray(0, forHead));
    if (forHead === redacted.length) return;
    stream.behindHead += redacted.length - forHead;
    stream.tail.push(redacted.subarray(forHead));
  };
  const flush = (): void => {
    if (timer) clearTimeout(timer);
    timer = null;
    pending = 0;
    const ready = pieces;
    pieces = [];
    for (const { name, chunks } of ready) {
      const bytes = Buffer.concat([streams[name].partial, ...chunks]);
      const cut = findWholeEnd(bytes);
      // copied, because a view would keep the whole buffer in memory
      streams[name].partial = Uint8Array.from(bytes.subarray(cut));
      for (const event of toOutputEvents(name, bytes.subarray(0, cut))) write(event);
    }
  };

  return {
    push(name, chunk) {
      const stream = streams[name];
      stream.redacting ??= redactor.stream();
      keep(name, stream.redacting.push(chunk));
    },
    skip(name, bytes) {
      flush();
      write({ type: "output", stream: name, text: "", skipped: bytes });
    },
    flush,
    end() {
      for (const name of names) {
        const { redacting } = streams[name];
        if (redacting) keep(name, redacting.end());
      }
      flush();
      for (const name of names) {
        const { partial, behindHead, tail } = streams[name];
        streams[name] = open();
        const kept = tail.bytes();
        const skipped = behindHead - kept.length;
        const joined = skipped > 0 ? partial : Buffer.concat([partial, kept]);
        for (const event of toOutputEvents(name, joined)) write(event);
        if (skipped === 0) continue;
        const cut = findWholeStart(kept);
        const [first, ...rest] = toOutputEvents(name, kept.subarray(cut));
        write({ type: "output", stream: name, text: "", ...first, skipped: skipped + cut });
        for (const event of rest) write(event);
      }
    },
  };
}

/** Splits a chunk into events. One that ends in half a character is sent as base64 and becomes text again in the record. */
function* toOutputEvents(stream: OutputStream, bytes: Uint8Array): Generator<OutputEvent> {
  for (let at = 0; at < bytes.length;) {
    const slice = bytes.subarray(at, at + eventBytes);
    const part = at + slice.length === bytes.length ? slice : slice.subarray(0, findWholeEnd(slice) || slice.length);
    const buffer = Buffer.from(part.buffer, part.byteOffset, part.length);
    yield {
      type: "output",
      stream,
      ...(isUtf8(part) ? { text: buffer.toString("utf8") } : { base64: buffer.toString("base64") }),
    };
    at += part.length;
  }
}

/** Emits a process's output as it arrives, and also pushes it to each of `keeping`. */
export async function emitOutput(
  stream: Readable | null,
  name: OutputStream,
  emit: RunContext["emit"],
  ...keeping: { push(bytes: Uint8Array): void }[]
): Promise<void> {
  if (stream === null) return;
  for await (const chunk of stream) {
    const bytes = chunk as Uint8Array; // no encoding is set
    for (const kept of keeping) kept.push(bytes);
    for (const event of toOutputEvents(name, bytes)) await emit(event);
  }
}
