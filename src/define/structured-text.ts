import { type Document, isMap, isNode, isPair, isScalar, isSeq, LineCounter, parseDocument, visit } from "yaml";
import { findInexactNumber, isExactNumber } from "../model/exact-numbers.ts";
import {
  isClearlyWithinTextLimits,
  findExceededTextLimit,
  tooDeep,
  findExceededValueLimit,
} from "./definition-limits.ts";
import { findJsonFault } from "./json-fault.ts";
import { hasRepeatedKeys } from "./repeated-keys.ts";

export type ParsedText =
  | { ok: true; value: unknown; findLine: FindLine; inexact: InexactNumber[] }
  | { ok: false; faults: TextFault[] };

export interface TextFault {
  line: number;
  problem: string;
  /** The text is well-formed but over a limit. */
  exceedsLimit?: true;
}

/** A number that JavaScript cannot represent exactly as written. */
export interface InexactNumber {
  path: PropertyKey[];
  text: string;
}

/** The line of a key, or of its nearest existing parent. */
export type FindLine = (path: readonly PropertyKey[]) => number;

export function parseJson(text: string): ParsedText {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const { offset, problem } = findJsonFault(text);
    return createFailure(text.slice(0, offset).split("\n").length, problem);
  }
  const limit = findExceededValueLimit(value);
  if (limit !== null) return createLimitFailure(1, limit);
  if (isClearlyWithinTextLimits(text) && !hasRepeatedKeys(text, value) && findInexactNumber(text) === null)
    return { ok: true, value, findLine: findLineLazily(() => parseJsonAsYaml(text, value)), inexact: [] };
  return parseJsonAsYaml(text, value);
}

/** Parses the text a second time only when a line is requested. */
function findLineLazily(parse: () => ParsedText): FindLine {
  let findLine: FindLine | null = null;
  return (path) => {
    if (findLine === null) {
      const parsed = parse();
      findLine = parsed.ok ? parsed.findLine : () => 1;
    }
    return findLine(path);
  };
}

/** JSON is also YAML, and a parsed YAML document knows the position of each key. */
function parseJsonAsYaml(text: string, value: unknown): ParsedText {
  const exceeded = findExceededTextLimit(text);
  if (exceeded !== null) return createLimitFailure(exceeded.line, exceeded.problem);
  const lines = new LineCounter();
  const document = tryParse(text, lines);
  if (document === null) return createLimitFailure(1, tooDeep);
  const repeated = findRepeatedKeys(document, lines);
  if (repeated.length > 0)
    return {
      ok: false,
      faults: repeated.slice(0, maxFaults).map(({ line, key }) => ({ line, problem: `the key ${key} is repeated` })),
    };
  return { ok: true, value, findLine: createLineFinder(document, lines, 1), inexact: findInexactNumbers(document) };
}

/** The most faults reported for one file. */
const maxFaults = 50;

/** `firstLine` is the line of the file on which the text starts. */
export function parseYaml(text: string, firstLine = 1): ParsedText {
  const exceeded = findExceededTextLimit(text);
  if (exceeded !== null) return createLimitFailure(exceeded.line + firstLine - 1, exceeded.problem);
  const lines = new LineCounter();
  const document = tryParse(text, lines);
  if (document === null) return createLimitFailure(firstLine, tooDeep);
  // Warnings are about unknown tags, whose values would silently differ from the intended ones.
  const parserFaults = [...document.errors, ...document.warnings].map(({ linePos, message }) => ({
    line: (linePos?.[0].line ?? 1) + firstLine - 1,
    problem: message.split("\n")[0]!.replace(/ at line .*$/, ""),
  }));
  const repeated = findRepeatedKeys(document, lines).map(({ line, key }) => ({
    line: line + firstLine - 1,
    problem: `the key ${key} is repeated`,
  }));
  const faults = [...parserFaults, ...repeated].slice(0, maxFaults);
  if (faults.length > 0) return { ok: false, faults };
  try {
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    const limit = findExceededValueLimit(value);
    if (limit !== null) return createLimitFailure(firstLine, limit);
    return {
      ok: true,
      value,
      findLine: createLineFinder(document, lines, firstLine),
      inexact: findInexactNumbers(document),
    };
  } catch (error) {
    // The aliases expand to a huge value.
    if (error instanceof ReferenceError) return createLimitFailure(firstLine, error.message);
    throw error;
  }
}

function createFailure(line: number, problem: string): ParsedText {
  return { ok: false, faults: [{ line, problem }] };
}

function createLimitFailure(line: number, problem: string): ParsedText {
  return { ok: false, faults: [{ line, problem, exceedsLimit: true }] };
}

/** Returns null if the text is nested too deeply. */
function tryParse(text: string, lineCounter: LineCounter): Document.Parsed | null {
  try {
    return parseDocument(text, { lineCounter, prettyErrors: true, logLevel: "silent", uniqueKeys: false });
  } catch (error) {
    // The recursive parser overflowed the stack.
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** Replaces the parser's own check, which takes quadratic time. Each key is quoted as in JSON. */
function findRepeatedKeys(document: Document.Parsed, lines: LineCounter): { line: number; key: string }[] {
  const repeated: { line: number; key: string }[] = [];
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value))
          repeated.push({ line: lines.linePos(key.range?.[0] ?? 0).line, key: JSON.stringify(String(key.value)) });
        seen.add(key.value);
      }
    },
  });
  return repeated;
}

function findInexactNumbers(document: Document.Parsed): InexactNumber[] {
  const inexact: InexactNumber[] = [];
  visit(document, {
    Scalar(_, node, ancestors) {
      if (typeof node.value !== "number" || node.source === undefined || isExactNumber(node.source)) return;
      const path = ancestors.flatMap((ancestor, index): PropertyKey[] => {
        if (isPair(ancestor)) return isScalar(ancestor.key) ? [String(ancestor.key.value)] : [];
        return isSeq(ancestor) ? [ancestor.items.indexOf(ancestors[index + 1] ?? node)] : [];
      });
      inexact.push({ path, text: node.source });
    },
  });
  return inexact;
}

function createLineFinder(document: Document.Parsed, lines: LineCounter, firstLine: number): FindLine {
  return (path) => {
    let node: unknown = document.contents;
    let offset = getStart(node);
    for (const key of path) {
      const next = stepInto(node, key);
      if (!next) break;
      offset = next.offset ?? offset;
      node = next.value;
    }
    return lines.linePos(offset ?? 0).line + firstLine - 1;
  };
}

function stepInto(node: unknown, key: PropertyKey): { offset: number | undefined; value: unknown } | undefined {
  if (isMap(node)) {
    const pair = node.items.find(
      (item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(key),
    );
    return pair && { offset: getStart(pair.key), value: pair.value };
  }
  if (!isSeq(node)) return undefined;
  const item = node.items[Number(key)];
  return item === undefined ? undefined : { offset: getStart(item), value: item };
}

function getStart(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
