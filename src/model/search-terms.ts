/** One thing that has to be found: words in a row; `prefix`: the last of them may go on. */
export interface SearchTerm {
  words: string[];
  prefix: boolean;
}

const longestWord = 64;
export const mostSearchTerms = 32;

/**
 * What a person types: every word must be found, each at the beginning of a word; "in quotes" the words as they are and
 * in that order. `deploy/prod` is two words in a row. A single letter is found only as a whole word.
 */
export function searchTerms(text: string): SearchTerm[] {
  const terms: SearchTerm[] = [];
  for (const [piece, quoted] of text.matchAll(/"([^"]*)"?|[^\s"]+/g)) {
    const words = searchWords(quoted ?? piece).map(({ word }) => word);
    if (words.length > 0) terms.push({ words, prefix: quoted === undefined && (words.at(-1)?.length ?? 0) > 1 });
  }
  return terms;
}

export interface FoundWord {
  word: string;
  /** Where it stands in the text. */
  at: number;
  end: number;
}

/** Both engines index these words alone, so that both find the same: lower case, without accents, letters and digits. */
export function searchWords(text: string, most = Number.POSITIVE_INFINITY): FoundWord[] {
  const found: FoundWord[] = [];
  for (const { 0: raw, index } of text.matchAll(isAscii.test(text) ? asciiWord : anyWord)) {
    if (found.length >= most) break;
    found.push({ word: plainWord(raw), at: index, end: index + raw.length });
  }
  return found;
}

const isAscii = /^[\0-\x7f]*$/;
const asciiWord = /[a-z0-9]+/gi;
/** Scripts that are written without spaces have words of one character. */
const anyWord =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]\p{M}*|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}])[\p{L}\p{N}]\p{M}*)+/gu;

function plainWord(raw: string): string {
  const lower = raw.slice(0, longestWord).toLowerCase();
  if (isAscii.test(lower)) return lower;
  return lower.normalize("NFKD").replaceAll(/[^\p{L}\p{N}]/gu, "") || lower;
}
