import { keepEnds } from "../../process/keep-ends.ts";

/** The beginning and the end of a program's stderr, as the likely reason for its failure. */
export interface StderrExcerpt {
  push(chunk: Uint8Array): void;
  text(): string;
}

const keptBytes = 16 * 1024;
const shownCharacters = 500;
const mark = "\n[...]\n";

export function createStderrExcerpt(): StderrExcerpt {
  const kept = keepEnds(keptBytes);
  return {
    push: (chunk) => kept.push(chunk),
    text() {
      const { head, tail } = kept.take();
      const decoder = new TextDecoder();
      return excerptOf(decoder.decode(head) + decoder.decode(tail));
    },
  };
}

/** Keeps the beginning and the end of a long text: the last line often names the cause. */
export function excerptOf(text: string, maxCharacters = shownCharacters): string {
  const whole = text.trim();
  if (whole.length <= maxCharacters) return whole;
  const room = maxCharacters - mark.length;
  const head = whole.slice(0, Math.floor(room / 2));
  const tail = whole.slice(-Math.ceil(room / 2));
  // cut between words: the redactor would not recognize half a secret
  return `${head.replace(/\s+\S*$/, "")}${mark}${tail.replace(/^\S*\s+/, "")}`.toWellFormed();
}
