import { keepEnds } from "../../process/keep-ends.ts";

/** The beginning and the end of a program's stderr, which likely name the reason for its failure. */
export interface StderrExcerpt {
  push(chunk: Uint8Array): void;
  text(): string;
}

const maxBufferedBytes = 16 * 1024;
const maxExcerptCharacters = 500;
const ellipsis = "\n[...]\n";

export function createStderrExcerpt(): StderrExcerpt {
  const buffer = keepEnds(maxBufferedBytes);
  return {
    push: (chunk) => buffer.push(chunk),
    text() {
      const { head, tail } = buffer.result();
      const decoder = new TextDecoder();
      return makeExcerpt(decoder.decode(head) + decoder.decode(tail));
    },
  };
}

/** Keeps the beginning and the end of long text, because the last line often names the cause. */
export function makeExcerpt(text: string, maxCharacters = maxExcerptCharacters): string {
  const trimmed = text.trim();
  if (trimmed.length <= maxCharacters) return trimmed;
  const room = maxCharacters - ellipsis.length;
  const head = trimmed.slice(0, Math.floor(room / 2));
  const tail = trimmed.slice(-Math.ceil(room / 2));
  // Splits between words, because the redactor would not recognize half a secret.
  return `${head.replace(/\s+\S*$/, "")}${ellipsis}${tail.replace(/^\S*\s+/, "")}`.toWellFormed();
}
