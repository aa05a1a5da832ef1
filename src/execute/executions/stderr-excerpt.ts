import { keepEnds } from "../../process/keep.ts";

/** What a program wrote to stderr, as far as it can say why the program failed. */
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

/** The beginning and the end of a text, as the last line is often the cause. Whole where it is short. */
export function excerptOf(text: string, maxCharacters = shownCharacters): string {
  const whole = text.trim();
  if (whole.length <= maxCharacters) return whole;
  const room = maxCharacters - mark.length;
  const head = whole.slice(0, Math.floor(room / 2));
  const tail = whole.slice(-Math.ceil(room / 2));
  // between words: half of a secret would not be known for one
  return `${head.replace(/\s+\S*$/, "")}${mark}${tail.replace(/^\S*\s+/, "")}`.toWellFormed();
}
