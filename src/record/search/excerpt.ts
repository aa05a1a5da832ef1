import { type FoundWord, type SearchTerm, searchWords } from "../../model/search-terms.ts";
import type { SearchMatch } from "../../model/search.ts";
import type { SearchedText } from "./documents.ts";

const longest = 200;
const before = 60;

/** Takes the text with most of the terms, and an excerpt around the first of them. */
export function matchIn(texts: readonly SearchedText[], terms: readonly SearchTerm[]): Omit<SearchMatch, "seq"> | null {
  let best: { found: number; where: SearchMatch["where"]; text: string; at: number } | null = null;
  for (const { where, text } of texts) {
    const words = searchWords(text);
    const places = terms.flatMap((term) => placeOf(term, words) ?? []);
    if (places.length > (best?.found ?? 0)) best = { found: places.length, where, text, at: Math.min(...places) };
  }
  return best === null ? null : { where: best.where, excerpt: excerptOf(best.text, best.at) };
}

function placeOf({ words, prefix }: SearchTerm, text: readonly FoundWord[]): number | null {
  const last = words.length - 1;
  const found = text.findIndex((_, from) =>
    words.every((word, index) => {
      const there = text[from + index]?.word;
      return prefix && index === last ? there?.startsWith(word) === true : there === word;
    }),
  );
  return text[found]?.at ?? null;
}

function excerptOf(text: string, at: number): string {
  const start = Math.max(0, at - before);
  const around = `${start > 0 ? "…" : ""}${text.slice(start, start + longest * 2)}`;
  // Models and commands write anything: remove halves of surrogate pairs and control characters.
  const plain = around
    .toWellFormed()
    .replaceAll(/[\p{C}\s]+/gu, " ")
    .trim();
  if (plain.length <= longest && start + longest * 2 >= text.length) return plain;
  return `${plain.slice(0, longest - 1).toWellFormed()}…`;
}
