import { isUtf8 } from "node:buffer";
import type { RunEvent } from "../model/event.ts";
import type { OutputStream, Redactor, RedactStream } from "../model/process.ts";
import { keepEnd } from "../process/keep.ts";

type OutputEvent = Extract<RunEvent, { type: "output" }>;

/** What a run's record keeps of its output: redacted, capped per stream, the head while it runs, the tail at the end. */
export interface OutputLog {
  push(stream: OutputStream, chunk: Uint8Array): void;
  /** Events for what came since the last call. */
  take(): OutputEvent[];
  /** The rest, and stdout as the record has it. */
  finish(): { events: OutputEvent[]; stdout: string };
}

const eventBytes = 64 * 1024;

export function createOutputLog(options: { maxBytes: number; redactor: Redactor }): OutputLog {
  const half = Math.ceil(options.maxBytes / 2);
  const pieces: Piece[] = [];
  const stdout: string[] = [];
  const streams = {
    stdout: openStream("stdout", options.redactor, half, pieces),
    stderr: openStream("stderr", options.redactor, half, pieces),
  };

  const take = (): OutputEvent[] => {
    const events = pieces.splice(0).flatMap((piece) => [...toEvents(piece)]);
    for (const event of events) if (event.stream === "stdout") stdout.push(textOf(event));
    return events;
  };
  return {
    push: (stream, chunk) => streams[stream].push(chunk),
    take,
    finish() {
      streams.stdout.finish();
      streams.stderr.finish();
      return { events: take(), stdout: stdout.join("") };
    },
  };
}

interface Piece {
  stream: OutputStream;
  skipped: number;
  chunks: Uint8Array[];
}

/** Everything is redacted, and only then cut: no secret lies across the end of the head or the beginning of the tail. */
function openStream(stream: OutputStream, redactor: Redactor, half: number, pieces: Piece[]) {
  const tail = keepEnd(half);
  let redacting: RedactStream | null = null;
  let total = 0;
  let head = 0;
  let partial: Uint8Array = new Uint8Array(0);

  const emit = (bytes: Uint8Array, last: boolean, skipped = 0): void => {
    const whole = partial.length > 0 ? Buffer.concat([partial, bytes]) : bytes;
    const cut = last ? whole.length : completeCharacters(whole);
    partial = whole.slice(cut);
    if (cut === 0 && skipped === 0) return;
    const open = pieces.at(-1);
    if (open && open.stream === stream && skipped === 0) open.chunks.push(whole.subarray(0, cut));
    else pieces.push({ stream, skipped, chunks: [whole.subarray(0, cut)] });
  };
  const keep = (redacted: Uint8Array): void => {
    total += redacted.length;
    const forHead = Math.min(redacted.length, half - head);
    head += forHead;
    if (forHead > 0) emit(redacted.subarray(0, forHead), false);
    if (forHead < redacted.length) tail.push(redacted.subarray(forHead));
  };

  return {
    push(chunk: Uint8Array): void {
      redacting ??= redactor.stream();
      keep(redacting.push(chunk));
    },
    finish(): void {
      if (!redacting) return;
      keep(redacting.end());
      const rest = tail.bytes();
      const skipped = total - head - rest.length;
      if (skipped > 0) emit(new Uint8Array(0), true);
      emit(skipped > 0 ? rest.subarray(firstCharacter(rest)) : rest, true, skipped);
    },
  };
}

function* toEvents(piece: Piece): Generator<OutputEvent> {
  const bytes = Buffer.concat(piece.chunks);
  for (let at = 0; at === 0 || at < bytes.length;) {
    const slice = bytes.subarray(at, at + eventBytes);
    const cut = at + slice.length === bytes.length ? slice.length : completeCharacters(slice) || slice.length;
    const part = slice.subarray(0, cut);
    yield {
      type: "output",
      stream: piece.stream,
      ...(isUtf8(part) ? { text: part.toString("utf8") } : { base64: part.toString("base64") }),
      ...(at === 0 && piece.skipped > 0 ? { skipped: piece.skipped } : {}),
    };
    at += cut;
    if (cut === 0) return;
  }
}

/** An output event as a person reads it, with a mark where bytes were not kept. */
export function textOf(event: OutputEvent): string {
  const text = event.text ?? Buffer.from(event.base64 ?? "", "base64").toString("utf8");
  return event.skipped ? `\n[... ${event.skipped} bytes not kept ...]\n${text}` : text;
}

/** The length without an incomplete UTF-8 character at the end. */
function completeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(4, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return bytes.length;
    if (byte >= 0xc0) {
      const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return needs > back ? bytes.length - back : bytes.length;
    }
  }
  return bytes.length;
}

/** The index of the first byte that can begin a character, within the length of one. */
function firstCharacter(bytes: Uint8Array): number {
  let at = 0;
  while (at < Math.min(3, bytes.length) && (bytes[at]! & 0xc0) === 0x80) at++;
  return at;
}
