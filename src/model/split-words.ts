export type SplitResult = { ok: true; words: string[] } | { ok: false; problem: string };

/**
 * Splits a command into words with the quoting rules of a POSIX shell, but without its expansions. Single quotes preserve
 * everything. In double quotes a backslash escapes `$`, a backtick, `"`, `\` and a newline; outside quotes it escapes the
 * next character. An escaped newline is removed.
 */
export function splitWords(text: string): SplitResult {
  const words: string[] = [];
  let word: string | undefined;
  for (let index = 0; index < text.length; index++) {
    const character = text[index]!;
    if (character === " " || character === "\t" || character === "\n") {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (character === "'" || character === '"') {
      const quotedPattern = character === "'" ? /'([^']*)'/y : /"((?:[^"\\]|\\[^])*)"/y;
      quotedPattern.lastIndex = index;
      const match = quotedPattern.exec(text);
      if (!match) return { ok: false, problem: `the ${character} at character ${index + 1} is never closed` };
      const content = match[1]!;
      word = (word ?? "") + (character === "'" ? content : content.replaceAll(/\\\n|\\([$`"\\])/g, "$1"));
      index += match[0].length - 1;
    } else if (character === "\\") {
      const next = text[++index];
      if (next === undefined) return { ok: false, problem: `the backslash at character ${index} escapes nothing` };
      if (next !== "\n") word = (word ?? "") + next;
    } else {
      word = (word ?? "") + character;
    }
  }
  if (word !== undefined) words.push(word);
  return { ok: true, words };
}
