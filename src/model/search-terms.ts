/** A sequence of words to find. `prefix`: the last word only has to match the beginning of a word. */
export interface SearchTerm {
  words: string[];
  prefix: boolean;
}

const maxWordLength = 64;
export const maxSearchTerms = 32;

/**
 * Parses a search query. Every word must match the beginning of a word, and words "in quotes" must match exactly and in
 * that order. `deploy/prod` is a sequence of two words. A single letter matches only a whole word.
 */
export function parseSearchTerms(text: string): SearchTerm[] {
  const terms: SearchTerm[] = [];
  for (const [piece, quoted] of text.matchAll(/"([^"]*)"?|[^\s"]+/g)) {
    const words = splitSearchWords(quoted ?? piece).map(({ word }) => word);
    if (words.length > 0) terms.push({ words, prefix: quoted === undefined && (words.at(-1)?.length ?? 0) > 1 });
  }
  return terms;
}

export interface FoundWord {
  word: string;
  /** Start and end in the text. */
  start: number;
  end: number;
}

/** Splits text into lower-case words of letters and digits without accents. Both engines index exactly these words. */
export function splitSearchWords(text: string, maxWords = Number.POSITIVE_INFINITY): FoundWord[] {
  const words: FoundWord[] = [];
  for (const { 0: raw, index } of text.matchAll(asciiPattern.test(text) ? asciiWordPattern : anyWordPattern)) {
    if (words.length >= maxWords) break;
    words.push({ word: normalizeWord(raw), start: index, end: index + raw.length });
  }
  return words;
}

const asciiPattern = /^[\0-\x7f]*$/;
const asciiWordPattern = /[a-z0-9]+/gi;
/** In scripts written without spaces, every character is a word. */
const anyWordPattern =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]\p{M}*|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}])[\p{L}\p{N}]\p{M}*)+/gu;

function normalizeWord(raw: string): string {
  const lower = raw.slice(0, maxWordLength).toLowerCase();
  if (asciiPattern.test(lower)) return lower;
  return lower.normalize("NFKD").replaceAll(/[^\p{L}\p{N}]/gu, "") || lower;
}
