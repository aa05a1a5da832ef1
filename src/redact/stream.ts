import type { RedactStream } from "../model/process.ts";
import { leftContext, type Span, viewOf } from "./matcher.ts";
import { scan, type Index } from "./scan.ts";

/**
 * Keeps what may still become a secret, and `leftContext` bytes before it. What comes out over any chunks
 * is what `redactBytes` makes of the whole: a matcher decides the same, only later.
 */
export function openStream(index: () => Index): RedactStream {
  /** The last bytes given out (as they came in), then those held back. */
  let kept = empty;
  let givenOut = 0;
  /** How far into (or beyond) `kept` the last secret reaches. */
  let coveredEnd = 0;

  function advance(chunk: Uint8Array, open: boolean): Uint8Array {
    const bytes = kept.length === 0 ? chunk : Buffer.concat([kept, chunk]);
    const { spans, decided } = scan(index(), viewOf(bytes, open, coveredEnd), givenOut);
    const written = writeOut(bytes, { spans, from: givenOut, to: decided, coveredEnd });
    const keepFrom = Math.max(0, decided - leftContext);
    kept = Buffer.from(bytes.subarray(keepFrom));
    givenOut = decided - keepFrom;
    coveredEnd = Math.max(0, written.coveredEnd - keepFrom);
    return written.bytes;
  }

  return {
    push: (chunk) => (chunk.length === 0 ? empty : advance(chunk, true)),
    end() {
      const rest = advance(empty, false);
      kept = empty;
      givenOut = 0;
      coveredEnd = 0;
      return rest;
    },
  };
}

export function redactBytes(index: Index, bytes: Uint8Array): Uint8Array {
  const { spans } = scan(index, viewOf(bytes, false), 0);
  return writeOut(bytes, { spans, from: 0, to: bytes.length, coveredEnd: 0 }).bytes;
}

interface Cut {
  spans: readonly Span[];
  from: number;
  to: number;
  coveredEnd: number;
}

/** Overlapping secrets go together under the first one's mark, so that no end of one is left over. */
function writeOut(bytes: Uint8Array, { spans, from, to, coveredEnd }: Cut): { bytes: Uint8Array; coveredEnd: number } {
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
