const maxSuggestions = 3;
const maxLines = 20_000;
const maxLineCharacters = 400;
const minSimilarity = 0.4;

/** Describes the lines that are most similar to the first line of the text that was not found. */
export function describeClosestLines(text: string, find: string): string {
  const firstLine = find
    .split("\n")
    .map((line) => line.trim())
    .find((line) => line !== "");
  if (firstLine === undefined) return "The text to find contains only white space.";
  const pairs = countPairs(firstLine);
  const candidates = text
    .split("\n", maxLines)
    .map((line, index) => ({ line, number: index + 1, similarity: compareLine(pairs, line) }))
    .filter((candidate) => candidate.similarity >= minSimilarity)
    .sort((a, b) => b.similarity - a.similarity || a.number - b.number)
    .slice(0, maxSuggestions);
  if (candidates.length === 0) return "No line is similar. Read the file again.";
  const lines = candidates.map(({ line, number }) => `${number}: ${line.slice(0, maxLineCharacters)}`);
  return `The closest lines are:\n${lines.join("\n")}\n`;
}

/** Returns the share of character pairs that both texts have (the Dice coefficient). */
function compareLine(pairs: ReadonlyMap<string, number>, line: string): number {
  const linePairs = countPairs(line.trim().slice(0, maxLineCharacters));
  let shared = 0;
  let total = 0;
  for (const [pair, count] of linePairs) {
    shared += Math.min(count, pairs.get(pair) ?? 0);
    total += count;
  }
  for (const count of pairs.values()) total += count;
  return total === 0 ? 0 : (2 * shared) / total;
}

function countPairs(text: string): Map<string, number> {
  const pairs = new Map<string, number>();
  const bounded = text.slice(0, maxLineCharacters);
  for (let index = 0; index < bounded.length - 1; index += 1) {
    const pair = bounded.slice(index, index + 2);
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  return pairs;
}
