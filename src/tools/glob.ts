/**
 * Compiles a glob pattern: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`, `**` for any number of directories, `\` before a literal
 * character. Matching takes time proportional to pattern times path. It uses no regular expression, because a pattern
 * from a model could make one take exponential time.
 */
export function compileGlob(pattern: string): (path: string) => boolean {
  const alternatives = expandBraces(pattern.replace(/^\.\//, "")).map((alternative) =>
    alternative.split("/").map(tokensOf),
  );
  return (path) => {
    const parts = path.split("/");
    return alternatives.some((segments) => matchPath(segments, parts));
  };
}

const maxAlternatives = 64;

/** Expands the innermost braces first. Unclosed braces, or too many alternatives, are taken literally. */
function expandBraces(pattern: string): string[] {
  let patterns = [pattern];
  for (;;) {
    const next = patterns.flatMap((alternative) => {
      const found = /\{([^{}]*,[^{}]*)\}/.exec(alternative);
      if (!found) return [alternative];
      const before = alternative.slice(0, found.index);
      const after = alternative.slice(found.index + found[0].length);
      return found[1]!.split(",").map((choice) => before + choice + after);
    });
    if (next.length === patterns.length || next.length > maxAlternatives) return patterns;
    patterns = next;
  }
}

type Token = "any" | "one" | { has(character: string): boolean };
type Segment = "directories" | readonly Token[];

function tokensOf(segment: string): Segment {
  if (segment === "**") return "directories";
  const tokens: Token[] = [];
  const characters = Array.from(segment);
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at]!;
    if (character === "*") {
      if (tokens.at(-1) !== "any") tokens.push("any");
    } else if (character === "?") tokens.push("one");
    else if (character === "[" && characters.indexOf("]", at + 2) !== -1) {
      const end = characters.indexOf("]", at + 2);
      tokens.push(classOf(characters.slice(at + 1, end)));
      at = end;
    } else {
      const literal = character === "\\" ? (characters[++at] ?? "\\") : character;
      tokens.push({ has: (other) => other === literal });
    }
  }
  return tokens;
}

function classOf(inner: string[]): Token {
  const negated = inner[0] === "!" || inner[0] === "^";
  const members = negated ? inner.slice(1) : inner;
  const ranges: [string, string][] = [];
  for (let at = 0; at < members.length; at += 1) {
    const isRange = members[at + 1] === "-" && at + 2 < members.length;
    ranges.push([members[at]!, members[isRange ? at + 2 : at]!]);
    if (isRange) at += 2;
  }
  return { has: (other) => ranges.some(([from, to]) => other >= from && other <= to) !== negated };
}

function matchPath(segments: readonly Segment[], parts: readonly string[]): boolean {
  return matchStars(
    segments,
    parts,
    (segment) => segment === "directories",
    (segment, part) => matchStars(segment as readonly Token[], Array.from(part), isAny, matchOne), // not "directories"
  );
}

function isAny(token: Token): boolean {
  return token === "any";
}

function matchOne(token: Token, character: string): boolean {
  return typeof token === "object" ? token.has(character) : true;
}

/** Backtracks only to the last star, because retrying an earlier one could not match more. */
function matchStars<P, V>(
  pattern: readonly P[],
  value: readonly V[],
  isStar: (one: P) => boolean,
  matches: (one: P, other: V) => boolean,
): boolean {
  let p = 0;
  let v = 0;
  let star = -1;
  let resume = 0;
  while (v < value.length) {
    if (p < pattern.length && isStar(pattern[p]!)) {
      star = p++;
      resume = v;
    } else if (p < pattern.length && matches(pattern[p]!, value[v]!)) {
      p += 1;
      v += 1;
    } else if (star !== -1) {
      p = star + 1;
      v = ++resume;
    } else return false;
  }
  while (p < pattern.length && isStar(pattern[p]!)) p += 1;
  return p === pattern.length;
}
