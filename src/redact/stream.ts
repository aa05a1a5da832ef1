import type { RedactStream } from "../model/process.ts";
import { leftContext, type Span, createView } from "./matcher.ts";
import { scan, type Index } from "./scan.ts";

/**
 * Redacts a stream. Holds back bytes that may turn out to be a secret, and keeps `leftContext` bytes before them. The
 * output does not depend on how the text is split into chunks: it is what `redactBytes` returns for the whole text.
 */
export function openStream(index: () => Index): RedactStream {
  /** The last emitted bytes (unredacted), followed by the bytes held back. */
  let buffered = empty;
  let emittedBytes = 0;
  /** The end of the last secret, relative to the start of `buffered`. */
  let coveredEnd = 0;

  function advance(chunk: Uint8Array, open: boolean): Uint8Array {
    const bytes = buffered.length === 0 ? chunk : Buffer.concat([buffered, chunk]);
    const { spans, decided } = scan(index(), createView(bytes, open, coveredEnd), emittedBytes);
    const redacted = applySpans(bytes, { spans, from: emittedBytes, to: decided, coveredEnd });
    const keepFrom = Math.max(0, decided - leftContext);
    buffered = Buffer.from(bytes.subarray(keepFrom));
    emittedBytes = decided - keepFrom;
    coveredEnd = Math.max(0, redacted.coveredEnd - keepFrom);
    return redacted.bytes;
  }

  return {
    push: (chunk) => (chunk.length === 0 ? empty : advance(chunk, true)),
    end() {
      const rest = advance(empty, false);
      buffered = empty;
      emittedBytes = 0;
      coveredEnd = 0;
      return rest;
    },
  };
}

export function redactBytes(index: Index, bytes: Uint8Array): Uint8Array {
  const { spans } = scan(index, createView(bytes, false), 0);
  return applySpans(bytes, { spans, from: 0, to: bytes.length, coveredEnd: 0 }).bytes;
}

interface SpanRange {
  spans: readonly Span[];
  from: number;
  to: number;
  coveredEnd: number;
}

/** Replaces overlapping secrets with the mark of the first one, so that no part of a secret remains. */
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
