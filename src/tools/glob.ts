/**
 * Compiles a glob pattern: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`, `**` for any number of directories, `\` before a literal
 * character. Matching takes time proportional to pattern length times path length. It uses no regular expression,
 * because a pattern from a model could make a regular expression take exponential time.
 */
export function compileGlob(pattern: string): (path: string) => boolean {
  const alternatives = expandBraces(pattern.replace(/^\.\//, "")).map((alternative) =>
    alternative.split("/").map(parseSegment),
  );
  return (path) => {
    const parts = path.split("/");
    return alternatives.some((segments) => matchPath(segments, parts));
  };
}

const maxAlternatives = 64;

/** Expands the innermost braces first. Treats unclosed braces, and braces with too many alternatives, literally. */
function expandBraces(pattern: string): string[] {
  let patterns = [pattern];
  for (;;) {
    const next = patterns.flatMap((alternative) => {
      const braces = /\{([^{}]*,[^{}]*)\}/.exec(alternative);
      if (!braces) return [alternative];
      const before = alternative.slice(0, braces.index);
      const after = alternative.slice(braces.index + braces[0].length);
      return braces[1]!.split(",").map((choice) => before + choice + after);
    });
    if (next.length === patterns.length || next.length > maxAlternatives) return patterns;
    patterns = next;
  }
}

type Token = "any" | "one" | { has(character: string): boolean };
type Segment = "directories" | readonly Token[];

function parseSegment(segment: string): Segment {
  if (segment === "**") return "directories";
  const tokens: Token[] = [];
  const characters = Array.from(segment);
  for (let index = 0; index < characters.length; index += 1) {
    const character = characters[index]!;
    if (character === "*") {
      if (tokens.at(-1) !== "any") tokens.push("any");
    } else if (character === "?") tokens.push("one");
    else if (character === "[" && characters.indexOf("]", index + 2) !== -1) {
      const end = characters.indexOf("]", index + 2);
      tokens.push(parseClass(characters.slice(index + 1, end)));
      index = end;
    } else {
      const literal = character === "\\" ? (characters[++index] ?? "\\") : character;
      tokens.push({ has: (candidate) => candidate === literal });
    }
  }
  return tokens;
}

function parseClass(inner: string[]): Token {
  const isNegated = inner[0] === "!" || inner[0] === "^";
  const members = isNegated ? inner.slice(1) : inner;
  const ranges: [string, string][] = [];
  for (let index = 0; index < members.length; index += 1) {
    const isRange = members[index + 1] === "-" && index + 2 < members.length;
    ranges.push([members[index]!, members[isRange ? index + 2 : index]!]);
    if (isRange) index += 2;
  }
  return { has: (candidate) => ranges.some(([from, to]) => candidate >= from && candidate <= to) !== isNegated };
}

function matchPath(segments: readonly Segment[], parts: readonly string[]): boolean {
  return matchStars(
    segments,
    parts,
    (segment) => segment === "directories",
    (segment, part) => matchStars(segment as readonly Token[], Array.from(part), isAny, matchOne), // matchStars() handles "directories" itself.
  );
}

function isAny(token: Token): boolean {
  return token === "any";
}

function matchOne(token: Token, character: string): boolean {
  return typeof token === "object" ? token.has(character) : true;
}

/** Backtracks only to the last star, because backtracking to an earlier star cannot match more. */
function matchStars<P, V>(
  pattern: readonly P[],
  value: readonly V[],
  isStar: (item: P) => boolean,
  matches: (item: P, element: V) => boolean,
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
