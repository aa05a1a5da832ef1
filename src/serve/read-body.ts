import type { IncomingMessage } from "node:http";
import { findInexact } from "../model/exact-numbers.ts";
import { Refusal } from "./refusal.ts";

/** The body as parsed JSON; undefined where there is none. Nothing past `limit` is ever held. */
export async function readJsonBody(incoming: IncomingMessage, limit: number): Promise<unknown> {
  const { "content-length": length, "content-type": type } = incoming.headers;
  if (length !== undefined && Number(length) > limit) throw tooLarge(limit);
  const bytes = await collect(incoming, limit);
  if (bytes.length === 0) return undefined;
  if (!isJson(type)) {
    throw new Refusal(415, "DROVER-API-002", `The body must be application/json, not ${type ?? "untyped"}.`, {
      faults: [{ path: "header.content-type", message: "application/json expected" }],
    });
  }
  const { text, value } = parseJson(bytes);
  refuseKeys(value);
  refuseInexact(text);
  return value;
}

/** Refuses what is not UTF-8, not JSON or too deep. */
export function parseJson(bytes: Uint8Array): { text: string; value: unknown } {
  if (isTooDeep(bytes)) throw tooDeep("body");
  const text = decode(bytes);
  return { text, value: parse(text) };
}

/** Nobody needs longer for some megabytes. */
const slowestMs = 120_000;

/** By events: an async iterator takes longer than everything else about a small body. */
function collect(incoming: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const slow = setTimeout(() => cut(), slowestMs);
    const settle = (): void => {
      clearTimeout(slow);
      incoming.off("data", take).off("end", end).off("close", cut).off("error", cut);
    };
    const take = (bytes: Buffer): void => {
      size += bytes.length;
      chunks.push(bytes);
      if (size <= limit) return;
      settle();
      incoming.pause();
      reject(tooLarge(limit));
    };
    const end = (): void => {
      settle();
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    };
    // nobody is left to read the answer
    const cut = (): void => {
      settle();
      reject(new Refusal(400, "DROVER-API-029", "The request was cut off."));
    };
    if (incoming.readableEnded) return end();
    if (incoming.destroyed) return cut();
    // no encoding is set, so chunks are buffers
    incoming.on("data", take).on("end", end).on("close", cut).on("error", cut);
  });
}

/** How long what comes of a refused body is read and thrown away. */
const unreadMs = 1000;

/**
 * Before a no is said to somebody who is still sending: a connection that is closed meanwhile would take the answer
 * along. What comes after this is cut off with the connection.
 */
export function throwAway(incoming: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    if (incoming.readableEnded || incoming.destroyed) return resolve();
    const enough = setTimeout(() => done(), unreadMs);
    const done = (): void => {
      clearTimeout(enough);
      incoming.off("end", done).off("close", done);
      resolve();
    };
    incoming.on("end", done).on("close", done).resume();
  });
}

export function tooLarge(limit: number): Refusal {
  return new Refusal(413, "DROVER-API-003", `The body is larger than ${limit} bytes.`, {
    faults: [{ path: "body", message: `at most ${limit} bytes` }],
  });
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new Refusal(400, "DROVER-API-001", "The body is not UTF-8.", {
      faults: [{ path: "body", message: "not UTF-8" }],
    });
  }
}

function isJson(type: string | undefined): boolean {
  return /^application\/json\s*(?:;|$)/i.test(type ?? "");
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

const deepest = 64;

/** Before it is parsed: JSON.parse takes most of a second for a megabyte of brackets. */
function isTooDeep(bytes: Uint8Array): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (quoted) {
      if (byte === 0x5c) at += 1;
      else if (byte === 0x22) quoted = false;
    } else if (byte === 0x22) quoted = true;
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      if (depth > deepest) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
  }
  return false;
}

function tooDeep(path: string): Refusal {
  return new Refusal(400, "DROVER-API-004", `The JSON is nested more than ${deepest} levels deep.`, {
    faults: [{ path, message: `at most ${deepest} levels` }],
  });
}

function refuseInexact(text: string): void {
  const found = findInexact(text);
  if (found === null) return;
  const path = `body${found.path.map((key) => (typeof key === "number" ? `[${key}]` : `.${key}`)).join("")}`;
  throw new Refusal(400, "DROVER-PAR-005", `${path}: a JSON number cannot carry ${found.text} exactly.`, {
    faults: [{ path, message: `${found.text} is not exact as a JSON number` }],
    next: "Send it as a string.",
  });
}

const forbidden = new Set(["__proto__", "constructor", "prototype"]);

function refuseKeys(root: unknown): void {
  const waiting: Node[] = isBranch(root) ? [{ value: root, parent: null, key: "" }] : [];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    for (const key of Object.keys(node.value)) {
      if (forbidden.has(key)) throw forbiddenKey({ value: {}, parent: node, key });
      const value: unknown = Reflect.get(node.value, key);
      if (isBranch(value)) waiting.push({ value, parent: node, key });
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

function forbiddenKey(node: Node): Refusal {
  return new Refusal(400, "DROVER-API-005", `The key ${node.key} is not allowed.`, {
    faults: [{ path: pathOf(node), message: "forbidden key" }],
  });
}

function pathOf(node: Node): string {
  const keys: string[] = [];
  for (let at: Node | null = node; at?.parent; at = at.parent)
    keys.unshift(Array.isArray(at.parent.value) ? `[${at.key}]` : `.${at.key}`);
  return `body${keys.join("")}`;
}
