const manyMembers = 1000;
const manyCharacters = 64 * 1024;

/** Whether validating the value would take milliseconds. Stops counting as soon as the answer is known. */
export function isLargeValue(value: unknown): boolean {
  const left = [value];
  let members = 0;
  let characters = 0;
  for (let one = left.pop(); one !== undefined || left.length > 0; one = left.pop()) {
    if (typeof one === "string") characters += one.length;
    if (typeof one !== "object" || one === null) continue;
    const found = Object.values(one);
    members += found.length;
    if (members > manyMembers || characters > manyCharacters) return true;
    left.push(...found);
  }
  return characters > manyCharacters;
}
