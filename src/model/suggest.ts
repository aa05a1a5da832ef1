/** Longer input is not a typo, and a comparison costs the product of both lengths. */
const maxLength = 300;
/** Total number of character pairs to compare, a few milliseconds' work. Callers control the input and some candidates. */
const maxComparisons = 500_000;

/** Finds the candidate for "did you mean": the one closest to the input, if it is close enough. */
export function suggest(typed: string, candidates: Iterable<string>): string | undefined {
  if (typed.length > maxLength) return undefined;
  let remaining = maxComparisons;
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(typed.length / 3)) + 1;
  for (const candidate of candidates) {
    // The distance is at least the difference in length.
    if (Math.abs(candidate.length - typed.length) >= bestDistance) continue;
    if ((remaining -= candidate.length * typed.length) < 0) break;
    const distance = editDistance(typed.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Counts insertions, deletions, replacements, and swaps of adjacent characters. */
function editDistance(a: string, b: string): number {
  let rowBeforeLast: number[] = [];
  let lastRow = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = lastRow[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row[j] = Math.min(replace, lastRow[j]! + 1, row[j - 1]! + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        row[j] = Math.min(row[j]!, rowBeforeLast[j - 2]! + 1);
    }
    [rowBeforeLast, lastRow] = [lastRow, row];
  }
  return lastRow[b.length]!;
}
