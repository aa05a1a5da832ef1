import { isUtf8 } from "node:buffer";
import { findInexactNumber } from "../../model/exact-numbers.ts";
import { findExceededLimit } from "../../model/json-limits.ts";
import { Refusal } from "../refusal.ts";
import { forbiddenKey, inexactNumber, isForbidden, notUtf8, tooComplex } from "./json-refusals.ts";

/** Parses a body. In addition to parseJson, refuses forbidden keys and numbers that JSON.parse would alter. */
export function parseBody(bytes: Uint8Array): unknown {
  const { text, value } = parseJson(bytes);
  refuseForbiddenKeys(value);
  const inexact = findInexactNumber(text);
  if (inexact !== null) throw inexactNumber(inexact.path, inexact.text);
  return value;
}

/** Throws a Refusal if the bytes are not UTF-8, not JSON, too deep or too large. */
export function parseJson(bytes: Uint8Array): { text: string; value: unknown } {
  // Check the limits before parsing: JSON.parse takes most of a second for a megabyte of brackets.
  const excess = findExceededLimit(bytes);
  if (excess !== null) throw tooComplex(excess);
  if (!isUtf8(bytes)) throw notUtf8();
  const text = new TextDecoder().decode(bytes);
  return { text, value: parse(text) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new Refusal(400, "DROVER-API-001", `The body is not valid JSON: ${error.message.slice(0, 200)}`, {
      faults: [{ path: "body", message: error.message.slice(0, 200) }],
    });
  }
}

function refuseForbiddenKeys(root: unknown): void {
  const unvisited: Node[] = isBranch(root) ? [{ value: root, parent: null, key: "" }] : [];
  for (let node = unvisited.pop(); node !== undefined; node = unvisited.pop()) {
    for (const key of Object.keys(node.value)) {
      if (isForbidden(key)) throw forbiddenKey([...getPath(node), key]);
      const value: unknown = Reflect.get(node.value, key);
      if (isBranch(value)) unvisited.push({ value, parent: node, key });
    }
  }
}

interface Node {
  value: object;
  parent: Node | null;
  key: string;
}

function isBranch(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function getPath(node: Node): (string | number)[] {
  const keys: (string | number)[] = [];
  for (let current: Node | null = node; current?.parent; current = current.parent)
    keys.unshift(Array.isArray(current.parent.value) ? Number(current.key) : current.key);
  return keys;
}
