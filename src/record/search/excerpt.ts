import { type FoundWord, type SearchTerm, splitSearchWords } from "../../model/search-terms.ts";
import type { SearchMatch } from "../../model/search.ts";
import type { SearchableText } from "./documents.ts";

const maxLength = 200;
const leadLength = 60;

/** Picks the text that contains most terms, and makes an excerpt around the first of them. */
export function findMatch(
  texts: readonly SearchableText[],
  terms: readonly SearchTerm[],
): Omit<SearchMatch, "seq"> | null {
  let best: { found: number; where: SearchMatch["where"]; text: string; at: number } | null = null;
  for (const { where, text } of texts) {
    const words = splitSearchWords(text);
    const positions = terms.flatMap((term) => findTerm(term, words) ?? []);
    if (positions.length > (best?.found ?? 0))
      best = { found: positions.length, where, text, at: Math.min(...positions) };
  }
  return best === null ? null : { where: best.where, excerpt: createExcerpt(best.text, best.at) };
}

function findTerm({ words, prefix }: SearchTerm, text: readonly FoundWord[]): number | null {
  const last = words.length - 1;
  const index = text.findIndex((_, from) =>
    words.every((word, offset) => {
      const textWord = text[from + offset]?.word;
      return prefix && offset === last ? textWord?.startsWith(word) === true : textWord === word;
    }),
  );
  return text[index]?.start ?? null;
}

function createExcerpt(text: string, index: number): string {
  const start = Math.max(0, index - leadLength);
  const excerpt = `${start > 0 ? "…" : ""}${text.slice(start, start + maxLength * 2)}`;
  // Models and commands write anything: remove halves of surrogate pairs and control characters.
  const plain = excerpt
    .toWellFormed()
    .replaceAll(/[\p{C}\s]+/gu, " ")
    .trim();
  if (plain.length <= maxLength && start + maxLength * 2 >= text.length) return plain;
  return `${plain.slice(0, maxLength - 1).toWellFormed()}…`;
}
