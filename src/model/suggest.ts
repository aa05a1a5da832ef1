/** Nobody mistypes more than this; and comparing costs the product of both lengths. */
const longest = 300;
/** Pairs of characters in all, some milliseconds: strangers choose what is compared, and some of what it is compared with. */
const mostCompared = 500_000;

/** "Did you mean": the candidate a slip of the keyboard away from what was typed, if any is close enough. */
export function suggest(typed: string, candidates: Iterable<string>): string | undefined {
  if (typed.length > longest) return undefined;
  let left = mostCompared;
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(typed.length / 3)) + 1;
  for (const candidate of candidates) {
    // each character too many, or too few, is one step
    if (Math.abs(candidate.length - typed.length) >= bestDistance) continue;
    if ((left -= candidate.length * typed.length) < 0) break;
    const distance = editDistance(typed.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Insertions, deletions, replacements, and swaps of neighbours. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row[j] = Math.min(replace, last[j]! + 1, row[j - 1]! + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        row[j] = Math.min(row[j]!, beforeLast[j - 2]! + 1);
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length]!;
}
