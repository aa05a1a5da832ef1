import { type Document, isMap, isNode, isPair, isScalar, isSeq, LineCounter, parseDocument, visit } from "yaml";
import { findInexactNumber, isExactNumber } from "../model/exact-numbers.ts";
import { isWithinTextLimits, textLimit, tooDeep, valueLimit } from "./definition-limits.ts";
import { findJsonFault } from "./json-fault.ts";
import { hasRepeatedKeys } from "./repeated-keys.ts";

export type ParsedText =
  | { ok: true; value: unknown; lineOf: LineOf; inexact: InexactNumber[] }
  | { ok: false; faults: TextFault[] };

export interface TextFault {
  line: number;
  problem: string;
  /** Nothing is wrong with it but its size. */
  isLimit?: true;
}

/** A number that the parsed value does not hold as it was written. */
export interface InexactNumber {
  path: PropertyKey[];
  text: string;
}

/** The line of a key, or of the nearest thing around it that is there. */
export type LineOf = (path: readonly PropertyKey[]) => number;

export function readJson(text: string): ParsedText {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const { offset, problem } = findJsonFault(text);
    return failure(text.slice(0, offset).split("\n").length, problem);
  }
  const limit = valueLimit(value);
  if (limit !== null) return pastLimit(1, limit);
  if (isWithinTextLimits(text) && !hasRepeatedKeys(text, value) && findInexactNumber(text) === null)
    return { ok: true, value, lineOf: lazily(() => readByYaml(text, value)), inexact: [] };
  return readByYaml(text, value);
}

/** Only where a line is asked for is the text parsed a second time. */
function lazily(read: () => ParsedText): LineOf {
  let lineOf: LineOf | null = null;
  return (path) => {
    if (lineOf === null) {
      const again = read();
      lineOf = again.ok ? again.lineOf : () => 1;
    }
    return lineOf(path);
  };
}

/** Every JSON text is YAML too, and a YAML document remembers where each key stands. */
function readByYaml(text: string, value: unknown): ParsedText {
  const unread = textLimit(text);
  if (unread !== null) return pastLimit(unread.line, unread.problem);
  const lines = new LineCounter();
  const document = tryParse(text, lines);
  if (document === null) return pastLimit(1, tooDeep);
  const twice = repeatedKeys(document, lines);
  if (twice.length > 0)
    return {
      ok: false,
      faults: twice.slice(0, maxFaults).map((line) => ({ line, problem: "a key stands there twice" })),
    };
  return { ok: true, value, lineOf: lineFinder(document, lines, 1), inexact: inexactNumbers(document) };
}

/** Nobody reads more of one file. */
const maxFaults = 50;

/** `firstLine` is where the text begins in its file. */
export function readYaml(text: string, firstLine = 1): ParsedText {
  const unread = textLimit(text);
  if (unread !== null) return pastLimit(unread.line + firstLine - 1, unread.problem);
  const lines = new LineCounter();
  const document = tryParse(text, lines);
  if (document === null) return pastLimit(firstLine, tooDeep);
  // a warning is a tag we do not know: its value would silently be something else than was meant
  const told = [...document.errors, ...document.warnings].map(({ linePos, message }) => ({
    line: (linePos?.[0].line ?? 1) + firstLine - 1,
    problem: message.split("\n")[0]!.replace(/ at line .*$/, ""),
  }));
  const twice = repeatedKeys(document, lines).map((line) => ({
    line: line + firstLine - 1,
    problem: "Map keys must be unique",
  }));
  const faults = [...told, ...twice].slice(0, maxFaults);
  if (faults.length > 0) return { ok: false, faults };
  try {
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    const limit = valueLimit(value);
    if (limit !== null) return pastLimit(firstLine, limit);
    return { ok: true, value, lineOf: lineFinder(document, lines, firstLine), inexact: inexactNumbers(document) };
  } catch (error) {
    // aliases that multiply into something huge
    if (error instanceof ReferenceError) return pastLimit(firstLine, error.message);
    throw error;
  }
}

function failure(line: number, problem: string): ParsedText {
  return { ok: false, faults: [{ line, problem }] };
}

function pastLimit(line: number, problem: string): ParsedText {
  return { ok: false, faults: [{ line, problem, isLimit: true }] };
}

/** null where it is nested too deep. */
function tryParse(text: string, lineCounter: LineCounter): Document.Parsed | null {
  try {
    return parseDocument(text, { lineCounter, prettyErrors: true, logLevel: "silent", uniqueKeys: false });
  } catch (error) {
    // the parser calls itself for each level
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** The lines of keys that stood in their map before. The parser would compare each with all others. */
function repeatedKeys(document: Document.Parsed, lines: LineCounter): number[] {
  const found: number[] = [];
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value)) found.push(lines.linePos(key.range?.[0] ?? 0).line);
        seen.add(key.value);
      }
    },
  });
  return found;
}

function inexactNumbers(document: Document.Parsed): InexactNumber[] {
  const found: InexactNumber[] = [];
  visit(document, {
    Scalar(_, node, ancestors) {
      if (typeof node.value !== "number" || node.source === undefined || isExactNumber(node.source)) return;
      const path = ancestors.flatMap((each, at): PropertyKey[] => {
        if (isPair(each)) return isScalar(each.key) ? [String(each.key.value)] : [];
        return isSeq(each) ? [each.items.indexOf(ancestors[at + 1] ?? node)] : [];
      });
      found.push({ path, text: node.source });
    },
  });
  return found;
}

function lineFinder(document: Document.Parsed, lines: LineCounter, firstLine: number): LineOf {
  return (path) => {
    let node: unknown = document.contents;
    let offset = startOf(node);
    for (const key of path) {
      const next = step(node, key);
      if (!next) break;
      offset = next.offset ?? offset;
      node = next.value;
    }
    return lines.linePos(offset ?? 0).line + firstLine - 1;
  };
}

function step(node: unknown, key: PropertyKey): { offset: number | undefined; value: unknown } | undefined {
  if (isMap(node)) {
    const pair = node.items.find(
      (item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(key),
    );
    return pair && { offset: startOf(pair.key), value: pair.value };
  }
  if (!isSeq(node)) return undefined;
  const item = node.items[Number(key)];
  return item === undefined ? undefined : { offset: startOf(item), value: item };
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
