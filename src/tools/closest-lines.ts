const shown = 3;
const maxLines = 20_000;
const maxLineLength = 400;
const leastLikeness = 0.4;

/** Where a text that was not found might have been meant: the lines most like its first one. */
export function closestLines(text: string, find: string): string {
  const wanted = find
    .split("\n")
    .map((line) => line.trim())
    .find((line) => line !== "");
  if (wanted === undefined) return "It consists of white space only.";
  const pairs = pairsOf(wanted);
  const near = text
    .split("\n", maxLines)
    .map((line, index) => ({ line, number: index + 1, likeness: likeness(pairs, line) }))
    .filter((one) => one.likeness >= leastLikeness)
    .sort((a, b) => b.likeness - a.likeness || a.number - b.number)
    .slice(0, shown);
  if (near.length === 0) return "No line is like it: read the file again.";
  const lines = near.map(({ line, number }) => `${number}: ${line.slice(0, maxLineLength)}`);
  return `The closest lines are:\n${lines.join("\n")}\n`;
}

/** Twice the pairs of neighbouring characters that both have, by all of them. */
function likeness(pairs: ReadonlyMap<string, number>, line: string): number {
  const other = pairsOf(line.trim().slice(0, maxLineLength));
  let both = 0;
  let all = 0;
  for (const [pair, count] of other) {
    both += Math.min(count, pairs.get(pair) ?? 0);
    all += count;
  }
  for (const count of pairs.values()) all += count;
  return all === 0 ? 0 : (2 * both) / all;
}

function pairsOf(text: string): Map<string, number> {
  const pairs = new Map<string, number>();
  const bounded = text.slice(0, maxLineLength);
  for (let at = 0; at < bounded.length - 1; at += 1) {
    const pair = bounded.slice(at, at + 2);
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  return pairs;
}
