/**
 * Whether a JSON number survives parsing. JavaScript parses numbers as doubles, which lose the last digits of long
 * integers and turn 1e400 into Infinity. Rounding of decimal places is accepted, because every JSON parser does it.
 */
export function isExactNumber(text: string): boolean {
  const value = Number(text);
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value !== 0 || !/[1-9]/.test(text.split(/e/i)[0]!);
  return Number.isFinite(value) && normalize(text) === normalize(String(value));
}

/** Finds the first number in a JSON text that parsing would alter, and the path to it. */
export function findInexactNumber(json: string): { path: (string | number)[]; text: string } | null {
  if (!/\d{16}|\d[eE]/.test(json)) return null;
  const containers: { list: boolean; index: number; key: [start: number, end: number] }[] = [];
  const tokens = /["{}[\],:]|-?\d[\d.eE+-]*/g;
  let string: [start: number, end: number] = [0, 0];
  for (let match = tokens.exec(json); match !== null; match = tokens.exec(json)) {
    const token = match[0];
    const container = containers.at(-1);
    if (token === '"') tokens.lastIndex = (string = [match.index, findStringEnd(json, match.index)])[1];
    else if (token === "{" || token === "[") containers.push({ list: token === "[", index: 0, key: [0, 0] });
    else if (token === "}" || token === "]") containers.pop();
    else if (token === ",") container!.index++;
    else if (token === ":") container!.key = string;
    else if (!isExactNumber(token)) {
      const path = containers.map(({ list, index, key }) =>
        list ? index : (JSON.parse(json.slice(...key)) as string),
      );
      return { path, text: token };
    }
  }
  return null;
}

/** The position after the closing quote of the string that starts at `start`. The text must be valid JSON. */
export function findStringEnd(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); ; end = json.indexOf('"', end + 1)) {
    let backslashes = end;
    while (json[backslashes - 1] === "\\") backslashes--;
    if ((end - backslashes) % 2 === 0) return end + 1;
  }
}

/** Normalizes a number to its digits and a power of ten, so that equal numbers give equal texts. */
function normalize(text: string): string {
  const [, whole = "", fraction = "", exponent = "0"] = /^[+-]?(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  const digits = whole + fraction;
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  const significant = digits.slice(0, end).replace(/^0+/, "");
  return `${significant}e${Number(exponent) - fraction.length + digits.length - end}`;
}
