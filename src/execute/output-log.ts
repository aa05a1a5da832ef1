import { isUtf8 } from "node:buffer";
import type { RunEvent } from "../model/event.ts";
import type { OutputStream, Redactor, RedactStream } from "../model/process.ts";

type OutputEvent = Extract<RunEvent, { type: "output" }>;

/** What a run's record keeps of its output: redacted, capped per stream, the head while it runs, the tail at the end. */
export interface OutputLog {
  push(stream: OutputStream, chunk: Uint8Array): void;
  /** Events for what came since the last call. */
  take(): OutputEvent[];
  /** The rest, and stdout as the record has it. */
  finish(): { events: OutputEvent[]; stdout: string };
}

/** Bytes before a kept tail that are looked at, so that a secret cut in two there is still seen, and not kept. */
const tailContext = 4096;
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
  /** Nothing may be joined to it: a character may be cut at its end only where the output itself was. */
  closed: boolean;
}

function openStream(stream: OutputStream, redactor: Redactor, half: number, pieces: Piece[]) {
  let total = 0;
  let head = 0;
  let redacting: RedactStream | null = null;
  let partial: Uint8Array = new Uint8Array(0);
  const tail: Uint8Array[] = [];
  let tailBytes = 0;

  const keep = (bytes: Uint8Array, last: boolean, skipped = 0): void => {
    const whole = partial.length > 0 ? Buffer.concat([partial, bytes]) : bytes;
    const cut = last ? whole.length : completeCharacters(whole);
    partial = whole.slice(cut);
    if (cut === 0 && skipped === 0) return;
    const open = pieces.at(-1);
    if (open && open.stream === stream && !open.closed && skipped === 0) open.chunks.push(whole.subarray(0, cut));
    else pieces.push({ stream, skipped, chunks: [whole.subarray(0, cut)], closed: false });
  };

  return {
    push(chunk: Uint8Array): void {
      total += chunk.length;
      const forHead = Math.min(chunk.length, half - head);
      if (forHead > 0) {
        head += forHead;
        redacting ??= redactor.stream();
        keep(redacting.push(chunk.subarray(0, forHead)), false);
      }
      if (forHead === chunk.length) return;
      // a copy: a view would keep the whole of a large chunk alive
      tail.push(Uint8Array.from(chunk.subarray(forHead)));
      tailBytes += chunk.length - forHead;
      while (tailBytes - tail[0]!.length >= half + tailContext) tailBytes -= tail.shift()!.length;
    },

    finish(): void {
      if (total === 0) return;
      const rest = Buffer.concat(tail);
      if (total - head <= half) {
        if (redacting) {
          keep(redacting.push(rest), false);
          keep(redacting.end(), true);
        }
        return;
      }
      // the head's redactor is dropped with what it holds back: that may be the start of a secret
      keep(new Uint8Array(0), true);
      const kept = rest.subarray(Math.max(0, rest.length - half - tailContext));
      const context = Math.max(0, kept.length - half);
      const fresh = redactor.stream();
      fresh.push(kept.subarray(0, context));
      // what it held back of the context comes out here too, and goes
      const after = Buffer.concat([fresh.push(kept.subarray(context)), fresh.end()]).subarray(-half);
      keep(after.subarray(firstCharacter(after)), true, total - head - (kept.length - context));
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
