export interface JsonFault {
  offset: number;
  problem: string;
}

type Expected = "value" | "value or ]" | "key" | "key or }" | "colon" | "comma or end";

/**
 * Finds where and why text stops being valid JSON. Call it only for text that JSON.parse rejected. JSON.parse itself
 * reports no position for the most common mistakes: an extra or missing comma, a comment, a single quote.
 */
export function findJsonFault(text: string): JsonFault {
  const openBrackets: ("{" | "[")[] = [];
  let expected: Expected = "value";
  let offset = 0;
  for (;;) {
    offset = skipWhitespace(text, offset);
    if (offset >= text.length) return { offset: text.length, problem: describeProblemAtEnd(openBrackets, expected) };
    const character = text[offset]!;
    if (expected === "comma or end" && openBrackets.length === 0)
      return { offset, problem: "the value is followed by more text" };
    if (character === "/" || character === "#") return { offset, problem: "JSON has no comments" };
    const closing = checkClosing(character, openBrackets.at(-1), expected);
    if (closing === "yes") {
      openBrackets.pop();
      expected = "comma or end";
      offset++;
    } else if (closing === "comma before it") {
      return { offset, problem: `there is a trailing comma before ${character}` };
    } else if (expected === "colon" || expected === "comma or end") {
      const missing: string | null = findMissingSign(character, expected);
      if (missing) return { offset, problem: `${missing} is missing before ${quoteAt(text, offset)}` };
      expected = expected === "comma or end" && openBrackets.at(-1) === "{" ? "key" : "value";
      offset++;
    } else if (character === '"') {
      const end = findStringEnd(text, offset);
      if ("problem" in end) return end;
      offset = end.offset;
      expected = expected.startsWith("key") ? "colon" : "comma or end";
    } else if (expected.startsWith("key")) {
      return { offset, problem: `a key in double quotes is expected, not ${quoteAt(text, offset)}` };
    } else if (character === "{" || character === "[") {
      openBrackets.push(character);
      expected = character === "{" ? "key or }" : "value or ]";
      offset++;
    } else {
      const word = /^(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![A-Za-z0-9_.+-])/.exec(
        text.slice(offset, offset + 400),
      );
      if (!word) return { offset, problem: `a value is expected, not ${quoteAt(text, offset)}` };
      offset += word[0].length;
      expected = "comma or end";
    }
  }
}

function skipWhitespace(text: string, offset: number): number {
  while (offset < text.length && " \t\r\n".includes(text[offset]!)) offset++;
  return offset;
}

function checkClosing(
  character: string,
  innermost: "{" | "[" | undefined,
  expected: Expected,
): "yes" | "comma before it" | "no" {
  const closing = (character === "}" && innermost === "{") || (character === "]" && innermost === "[");
  if (!closing || expected === "colon") return "no";
  if (expected === "comma or end" || expected === "key or }" || expected === "value or ]") return "yes";
  return expected === "key" || innermost === "[" ? "comma before it" : "no";
}

function findMissingSign(character: string, expected: "colon" | "comma or end"): string | null {
  if (expected === "colon") return character === ":" ? null : "a colon";
  return character === "," ? null : "a comma or the end";
}

function findStringEnd(text: string, start: number): { offset: number } | JsonFault {
  for (let offset = start + 1; offset < text.length; offset++) {
    const character = text[offset]!;
    if (character === '"') return { offset: offset + 1 };
    if (character === "\n") return { offset: start, problem: "a string is not closed on its line" };
    if (character < " ") return { offset, problem: "a string contains a control character" };
    if (character !== "\\") continue;
    if (!/^\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/.test(text.slice(offset, offset + 6))) {
      return { offset, problem: `${text.slice(offset, offset + 2)} is not an escape in JSON` };
    }
    offset++;
  }
  return { offset: start, problem: "a string is never closed" };
}

function describeProblemAtEnd(openBrackets: readonly string[], expected: Expected): string {
  if (openBrackets.length === 0) return expected === "value" ? "the file is empty" : "it cannot be read as JSON";
  return `${openBrackets.at(-1)} is never closed`;
}

function quoteAt(text: string, offset: number): string {
  return JSON.stringify(/^[A-Za-z0-9_.+-]{1,20}/.exec(text.slice(offset, offset + 20))?.[0] ?? text[offset]);
}
