import { Lexer } from "yaml";

/** People write definitions by hand. A file over these limits is refused before any expensive work. */
export const maxDefinitionBytes = 1024 * 1024;
export const maxDepth = 100;
/** Keys, list items and brackets. */
const maxParts = 10_000;
/** Anchors, aliases and tags. */
const maxReferences = 200;
/** All tokens of the lexer, including spaces and comments. */
const maxTokens = 100_000;
/** Values, with each alias counted at its expanded size. */
const maxValues = 20_000;

export const tooDeep = `it is nested more than ${maxDepth} levels deep`;

/** Returns the first limit that a YAML text exceeds. Checked before parsing, because the parser needs minutes for some texts of a megabyte. */
export function findExceededTextLimit(text: string): { line: number; problem: string } | null {
  if (isClearlyWithinTextLimits(text)) return null;
  if (Buffer.byteLength(text) > maxDefinitionBytes)
    return { line: 1, problem: `it is larger than ${maxDefinitionBytes / 1024} KB` };
  let line = 1;
  let parts = 0;
  let references = 0;
  let tokens = 0;
  for (const token of new Lexer().lex(text)) {
    const [first] = token;
    if (token.length === 1 && ":?-,[]{}".includes(token)) parts++;
    else if (first === "&" || first === "*" || first === "!") references++;
    else if (token === "\n" || token === "\r\n") line++;
    tokens++;
    if (parts > maxParts) return { line, problem: `it has more than ${maxParts} keys and list items` };
    if (references > maxReferences)
      return { line, problem: `it has more than ${maxReferences} anchors, aliases and tags` };
    if (tokens > maxTokens) return { line, problem: `it has more than ${maxTokens} tokens` };
  }
  return null;
}

/** A quick check that passes nearly all texts: each part takes a character, and each reference starts with `&`, `*` or `!`. */
export function isClearlyWithinTextLimits(text: string): boolean {
  return text.length <= maxParts && text.split(/[&*!]/, maxReferences + 2).length <= maxReferences + 1;
}

/** Returns the limit that a parsed value exceeds. Walks it level by level, because a deeply nested value would overflow the stack of a recursive walk. */
export function findExceededValueLimit(value: unknown): string | null {
  let level = [value];
  let values = 0;
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) return tooDeep;
    const next: unknown[] = [];
    for (const item of level) {
      if (typeof item !== "object" || item === null) continue;
      const inner: unknown[] = Object.values(item);
      values += inner.length;
      if (values > maxValues) return `it has more than ${maxValues} values`;
      for (const child of inner) next.push(child);
    }
    level = next;
  }
  return null;
}
