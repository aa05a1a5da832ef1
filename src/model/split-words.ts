export type Words = { ok: true; words: string[] } | { ok: false; problem: string };

/**
 * Splits a command into words with the quoting rules of a POSIX shell, but without its expansions. Single quotes preserve
 * everything. In double quotes a backslash escapes `$`, a backtick, `"`, `\` and a newline; outside quotes it escapes the
 * next character. An escaped newline is removed.
 */
export function splitWords(text: string): Words {
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === " " || character === "\t" || character === "\n") {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (character === "'" || character === '"') {
      const quoted = character === "'" ? /'([^']*)'/y : /"((?:[^"\\]|\\[^])*)"/y;
      quoted.lastIndex = at;
      const found = quoted.exec(text);
      if (!found) return { ok: false, problem: `the ${character} at character ${at + 1} is never closed` };
      const inside = found[1]!;
      word = (word ?? "") + (character === "'" ? inside : inside.replaceAll(/\\\n|\\([$`"\\])/g, "$1"));
      at += found[0].length - 1;
    } else if (character === "\\") {
      const next = text[++at];
      if (next === undefined) return { ok: false, problem: `the backslash at character ${at} escapes nothing` };
      if (next !== "\n") word = (word ?? "") + next;
    } else {
      word = (word ?? "") + character;
    }
  }
  if (word !== undefined) words.push(word);
  return { ok: true, words };
}
