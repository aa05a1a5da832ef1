import { type Document, isMap, isNode, isPair, isScalar, isSeq, LineCounter, parseDocument, visit } from "yaml";
import { isExact } from "../model/exact-numbers.ts";
import { findJsonFault } from "./json-fault.ts";

export type Structured =
  | { ok: true; value: unknown; lineOf: LineOf; inexact: InexactNumber[] }
  | { ok: false; faults: TextFault[] };

export interface TextFault {
  line: number;
  problem: string;
}

/** A number that the parsed value does not hold as it was written. */
export interface InexactNumber {
  path: PropertyKey[];
  text: string;
}

/** The line of a key, or of the nearest thing around it that is there. */
export type LineOf = (path: readonly PropertyKey[]) => number;

export function readJson(text: string): Structured {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const { offset, problem } = findJsonFault(text);
    return failure(text.slice(0, offset).split("\n").length, problem);
  }
  if (isDeep(value)) return failure(1, tooDeep);
  const lines = new LineCounter();
  // every JSON text is YAML too, and a YAML document remembers where each key stands
  const document = tryParse(text, lines);
  if (document === null) return failure(1, tooDeep);
  const twice = document.errors.filter(({ code }) => code === "DUPLICATE_KEY");
  if (twice.length > 0)
    return {
      ok: false,
      faults: twice.map(({ linePos }) => ({ line: linePos?.[0].line ?? 1, problem: "a key stands there twice" })),
    };
  return { ok: true, value, lineOf: lineFinder(document, lines, 1), inexact: inexactNumbers(document) };
}

/** `firstLine` is where the text begins in its file. */
export function readYaml(text: string, firstLine = 1): Structured {
  const lines = new LineCounter();
  const document = tryParse(text, lines);
  if (document === null) return failure(firstLine, tooDeep);
  // a warning is a tag we do not know: its value would silently be something else than was meant
  const faults = [...document.errors, ...document.warnings].map(({ linePos, message }) => ({
    line: (linePos?.[0].line ?? 1) + firstLine - 1,
    problem: message.split("\n")[0]!.replace(/ at line .*$/, ""),
  }));
  if (faults.length > 0) return { ok: false, faults };
  try {
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    if (isDeep(value)) return failure(firstLine, tooDeep);
    return { ok: true, value, lineOf: lineFinder(document, lines, firstLine), inexact: inexactNumbers(document) };
  } catch (error) {
    // aliases that multiply into something huge
    if (error instanceof ReferenceError) return failure(firstLine, error.message);
    throw error;
  }
}

function failure(line: number, problem: string): Structured {
  return { ok: false, faults: [{ line, problem }] };
}

/** null where it is nested too deep. */
function tryParse(text: string, lineCounter: LineCounter): Document.Parsed | null {
  try {
    return parseDocument(text, { lineCounter, prettyErrors: true, logLevel: "silent" });
  } catch (error) {
    // the parser calls itself for each level
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function inexactNumbers(document: Document.Parsed): InexactNumber[] {
  const found: InexactNumber[] = [];
  visit(document, {
    Scalar(_, node, ancestors) {
      if (typeof node.value !== "number" || node.source === undefined || isExact(node.source)) return;
      const path = ancestors.flatMap((each, at): PropertyKey[] => {
        if (isPair(each)) return isScalar(each.key) ? [String(each.key.value)] : [];
        return isSeq(each) ? [each.items.indexOf(ancestors[at + 1] ?? node)] : [];
      });
      found.push({ path, text: node.source });
    },
  });
  return found;
}

const maxDepth = 100;
const tooDeep = `it is nested more than ${maxDepth} levels deep`;

/** Level by level, with no recursion that a hostile text could exhaust. */
function isDeep(value: unknown): boolean {
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) return true;
    level = level.flatMap((item) => (typeof item === "object" && item !== null ? Object.values(item) : []));
  }
  return false;
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
