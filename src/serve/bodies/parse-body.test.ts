import { expect, test } from "vitest";
import { type Dice, dice } from "../../../test/fuzz.ts";
import { Refusal } from "../refusal.ts";
import { parseBody } from "./parse-body.ts";

const parse = (text: string) => parseBody(Buffer.from(text));
const tryParse = (text: string) => {
  try {
    parse(text);
    return "accepted";
  } catch (error) {
    return error instanceof Refusal ? [error.problem.code, error.problem.faults[0]?.path] : error;
  }
};

const megabyte = 1024 * 1024;
test.each([
  ["surrounding whitespace", ' \n\t\r{ "a" : [ 1 , { } , [ ] ] , "b":null}\n '],
  ["a scalar", '"x"'],
  ["numbers", "[0,-0,1.5,-1e2,1E+2,2e-3,0.1,123456789012345]"],
  ["words", "[true,false,null]"],
  ["escapes", String.raw`["\"","\\","\\\"","\u00e9\ud83d\ude00","\ud83d","\/\b\f\n\r\t"]`],
  ["a repeated name", '{"a":1,"b":2,"a":3}'],
  ["numeric names", '{"b":1,"10":2,"9":3}'],
  ["a byte order mark", '\ufeff{"a":1}'],
  ["wide objects", JSON.stringify(Array.from({ length: 9 }, () => Object.fromEntries(numberedEntries(3000))))],
  ["a long string", JSON.stringify("x".repeat(3 * megabyte))],
  [
    "long strings of characters of two to four bytes",
    JSON.stringify(["aé€😀".repeat(megabyte / 2), "é".repeat(megabyte)]),
  ],
  ["a long string of control characters", JSON.stringify("\u0000".repeat(megabyte / 2))],
  ["a long string of quotes", JSON.stringify('a"'.repeat(megabyte))],
  ["long strings of backslashes", JSON.stringify(["\\".repeat(megabyte + 1), `a${"\\".repeat(megabyte)}`])],
  ["a long string of surrogate pairs", `"${String.raw`\ud83d\ude00`.repeat(megabyte / 4)}"`],
])("reads %s as JSON.parse does", (_, text) => {
  expect(JSON.stringify(parse(text))).toBe(JSON.stringify(JSON.parse(text.replace(/^\ufeff/, ""))));
});

test("accepts and refuses randomly altered JSON exactly as JSON.parse does", () => {
  const random = dice(17);
  for (let round = 0; round < 3000; round += 1) {
    let text = JSON.stringify(randomValue(random, 4));
    for (let changes = random.int(3); changes > 0; changes -= 1) {
      const offset = random.int(text.length);
      text = text.slice(0, offset) + random.pick(characters) + text.slice(offset + random.int(2));
    }
    const actual = captureResult(() => parse(text));
    // Numbers that JSON.parse would alter are refused on purpose.
    if (actual !== "DROVER-PAR-005")
      expect({ text, actual }).toEqual({ text, actual: captureResult(() => JSON.parse(text)) });
  }
});

test.each([
  ["a prototype key", '{"a":[0,{"__proto__":1}]}', ["DROVER-API-005", "body.a[1].__proto__"]],
  ["a number that would be altered", '{"a":[1,12345678901234567890]}', ["DROVER-PAR-005", "body.a[1]"]],
  ["Infinity", "[1e400]", ["DROVER-PAR-005", "body[0]"]],
  ["too many levels", "[".repeat(65), ["DROVER-API-004", "body"]],
  ["too many values", `[${"1,".repeat(500_001)}`, ["DROVER-API-003", "body"]],
  // Names are counted by their hashes. A few of them may be the same.
  ["too many names", JSON.stringify(Object.fromEntries(numberedEntries(25_100))), ["DROVER-API-003", "body"]],
  ["an unterminated string", '"x', ["DROVER-API-001", "body"]],
  ["only whitespace", " ", ["DROVER-API-001", "body"]],
])("refuses %s", (_, text, refused) => {
  expect(tryParse(text)).toEqual(refused);
});

function numberedEntries(count: number): [string, number][] {
  return Array.from({ length: count }, (_, index) => [`name${index}`, index]);
}

/** Returns text, so that comparing tells 0 from -0. */
function captureResult(parsed: () => unknown): string {
  try {
    return JSON.stringify(parsed());
  } catch (fault) {
    return fault instanceof Refusal && fault.problem.code !== "DROVER-API-001" ? fault.problem.code : "not JSON";
  }
}

const characters = '{}[],:"\\ 019-+.eEtfnu\n\u0000é'.split("");
const texts = ["", "a", "é\n", '"\\', "long enough to be read in another way: ".repeat(3)];

function randomValue(random: Dice, depth: number): unknown {
  const kind = random.int(depth === 0 ? 4 : 6);
  if (kind === 0) return random.pick(texts);
  if (kind === 1) return random.int(2000) / 8 - 100;
  if (kind === 2) return random.pick([true, false, null]);
  if (kind === 3) return random.int(1000);
  const inner = Array.from({ length: random.int(4) }, () => randomValue(random, depth - 1));
  return kind === 4 ? inner : Object.fromEntries(inner.map((value, index) => [`${random.pick(texts)}${index}`, value]));
}
