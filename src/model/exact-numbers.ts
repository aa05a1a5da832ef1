/**
 * JSON numbers are doubles here: of a long integer they keep only the first digits, and 1e400 becomes Infinity. Digits
 * after the point that a double has no room for do not count: every reader of JSON rounds those.
 */
export function isExactNumber(text: string): boolean {
  const value = Number(text);
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value !== 0 || !/[1-9]/.test(text.split(/e/i)[0]!);
  return Number.isFinite(value) && inDigits(text) === inDigits(String(value));
}

/** The first number of a JSON text that would be altered when it is parsed, with the path to it. */
export function findInexactNumber(json: string): { path: (string | number)[]; text: string } | null {
  if (!/\d{16}|\d[eE]/.test(json)) return null;
  const open: { list: boolean; index: number; key: [start: number, end: number] }[] = [];
  const tokens = /["{}[\],:]|-?\d[\d.eE+-]*/g;
  let string: [start: number, end: number] = [0, 0];
  for (let found = tokens.exec(json); found !== null; found = tokens.exec(json)) {
    const token = found[0];
    const inner = open.at(-1);
    if (token === '"') tokens.lastIndex = (string = [found.index, endOfString(json, found.index)])[1];
    else if (token === "{" || token === "[") open.push({ list: token === "[", index: 0, key: [0, 0] });
    else if (token === "}" || token === "]") open.pop();
    else if (token === ",") inner!.index++;
    else if (token === ":") inner!.key = string;
    else if (!isExactNumber(token)) {
      const path = open.map(({ list, index, key }) => (list ? index : (JSON.parse(json.slice(...key)) as string)));
      return { path, text: token };
    }
  }
  return null;
}

/** Behind the quote that ends the string which begins at `start`, in a text that is valid. */
export function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); ; end = json.indexOf('"', end + 1)) {
    let before = end;
    while (json[before - 1] === "\\") before--;
    if ((end - before) % 2 === 0) return end + 1;
  }
}

/** Its digits and the power of ten they are multiplied with; two texts of the same number give the same. */
function inDigits(text: string): string {
  const [, whole = "", fraction = "", exponent = "0"] = /^[+-]?(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  const digits = whole + fraction;
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  const significant = digits.slice(0, end).replace(/^0+/, "");
  return `${significant}e${Number(exponent) - fraction.length + digits.length - end}`;
}
