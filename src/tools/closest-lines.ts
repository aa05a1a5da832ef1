const shown = 3;
const maxLines = 20_000;
const maxLineLength = 400;
const minSimilarity = 0.4;

/** Suggests where a text that was not found might be: the lines most similar to its first line. */
export function closestLines(text: string, find: string): string {
  const wanted = find
    .split("\n")
    .map((line) => line.trim())
    .find((line) => line !== "");
  if (wanted === undefined) return "The text to find is only white space.";
  const pairs = pairsOf(wanted);
  const near = text
    .split("\n", maxLines)
    .map((line, index) => ({ line, number: index + 1, similarity: similarity(pairs, line) }))
    .filter((candidate) => candidate.similarity >= minSimilarity)
    .sort((a, b) => b.similarity - a.similarity || a.number - b.number)
    .slice(0, shown);
  if (near.length === 0) return "No line is similar: read the file again.";
  const lines = near.map(({ line, number }) => `${number}: ${line.slice(0, maxLineLength)}`);
  return `The closest lines are:\n${lines.join("\n")}\n`;
}

/** The share of character pairs that both texts have (the Dice coefficient). */
function similarity(pairs: ReadonlyMap<string, number>, line: string): number {
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
