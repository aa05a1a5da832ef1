import type { RedactStream } from "../model/process.ts";
import { leftContext, type Span, viewOf } from "./matcher.ts";
import { scan, type Index } from "./scan.ts";

/**
 * Redacts a stream. Holds back what may still become a secret, with `leftContext` bytes before it. The output is the
 * same as that of `redactBytes` for the whole text, however it is split into chunks.
 */
export function openStream(index: () => Index): RedactStream {
  /** The last emitted bytes (unredacted), then those held back. */
  let kept = empty;
  let emitted = 0;
  /** The end of the last secret, relative to the start of `kept`. */
  let coveredEnd = 0;

  function advance(chunk: Uint8Array, open: boolean): Uint8Array {
    const bytes = kept.length === 0 ? chunk : Buffer.concat([kept, chunk]);
    const { spans, decided } = scan(index(), viewOf(bytes, open, coveredEnd), emitted);
    const written = applySpans(bytes, { spans, from: emitted, to: decided, coveredEnd });
    const keepFrom = Math.max(0, decided - leftContext);
    kept = Buffer.from(bytes.subarray(keepFrom));
    emitted = decided - keepFrom;
    coveredEnd = Math.max(0, written.coveredEnd - keepFrom);
    return written.bytes;
  }

  return {
    push: (chunk) => (chunk.length === 0 ? empty : advance(chunk, true)),
    end() {
      const rest = advance(empty, false);
      kept = empty;
      emitted = 0;
      coveredEnd = 0;
      return rest;
    },
  };
}

export function redactBytes(index: Index, bytes: Uint8Array): Uint8Array {
  const { spans } = scan(index, viewOf(bytes, false), 0);
  return applySpans(bytes, { spans, from: 0, to: bytes.length, coveredEnd: 0 }).bytes;
}

interface SpanRange {
  spans: readonly Span[];
  from: number;
  to: number;
  coveredEnd: number;
}

/** Replaces overlapping secrets together with the first one's mark, so that no part of one is left. */
function applySpans(
  bytes: Uint8Array,
  { spans, from, to, coveredEnd }: SpanRange,
): { bytes: Uint8Array; coveredEnd: number } {
  if (spans.length === 0 && coveredEnd <= from) return { bytes: bytes.subarray(from, to), coveredEnd };
  const pieces: Uint8Array[] = [];
  let covered = coveredEnd;
  let written = from;
  for (const span of spans) {
    if (span.start >= to) break;
    if (span.start >= covered) {
      pieces.push(bytes.subarray(Math.max(written, covered), span.start), Buffer.from(span.mark ?? "", "latin1"));
      written = span.start;
    }
    covered = Math.max(covered, span.end);
  }
  if (covered < to) pieces.push(bytes.subarray(Math.max(written, covered), to));
  return { bytes: Buffer.concat(pieces), coveredEnd: covered };
}

const empty: Uint8Array = new Uint8Array(0);
