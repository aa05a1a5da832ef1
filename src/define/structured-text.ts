import { type Document, isMap, isNode, isPair, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import { findJsonFault } from "./json-fault.ts";

export type Structured = { ok: true; value: unknown; lineOf: LineOf } | { ok: false; line: number; problem: string };

/** The line of a key, or of the nearest thing around it that is there. */
export type LineOf = (path: readonly PropertyKey[]) => number;

export function readJson(text: string): Structured {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const { offset, problem } = findJsonFault(text);
    return { ok: false, line: text.slice(0, offset).split("\n").length, problem };
  }
  if (isDeep(value)) return { ok: false, line: 1, problem: tooDeep };
  const lines = new LineCounter();
  // every JSON text is YAML too, and a YAML document remembers where each key stands
  const document = tryParse(text, lines);
  if (!("document" in document)) return { ok: false, line: 1, problem: document.problem };
  const twice = document.document.errors.find(({ code }) => code === "DUPLICATE_KEY");
  if (twice) return { ok: false, line: twice.linePos?.[0].line ?? 1, problem: "a key stands there twice" };
  return { ok: true, value, lineOf: lineFinder(document.document, lines, 1) };
}

/** `firstLine` is where the text begins in its file. */
export function readYaml(text: string, firstLine = 1): Structured {
  const lines = new LineCounter();
  const parsed = tryParse(text, lines);
  if (!("document" in parsed)) return { ok: false, line: firstLine, problem: parsed.problem };
  const { document } = parsed;
  // a warning is a tag we do not know: its value would silently be something else than was meant
  const fault = document.errors[0] ?? document.warnings[0];
  if (fault) {
    const line = (fault.linePos?.[0].line ?? 1) + firstLine - 1;
    return { ok: false, line, problem: fault.message.split("\n")[0]!.replace(/ at line .*$/, "") };
  }
  try {
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    if (isDeep(value)) return { ok: false, line: firstLine, problem: tooDeep };
    return { ok: true, value, lineOf: lineFinder(document, lines, firstLine) };
  } catch (error) {
    // aliases that multiply into something huge
    if (error instanceof ReferenceError) return { ok: false, line: firstLine, problem: error.message };
    throw error;
  }
}

function tryParse(text: string, lineCounter: LineCounter): { document: Document.Parsed } | { problem: string } {
  try {
    return { document: parseDocument(text, { lineCounter, prettyErrors: true, logLevel: "silent" }) };
  } catch (error) {
    // the parser calls itself for each level
    if (error instanceof RangeError) return { problem: tooDeep };
    throw error;
  }
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
