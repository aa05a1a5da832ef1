import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { findInexactNumber } from "../model/exact-numbers.ts";
import { findExceededLimit } from "../model/json-limits.ts";
import type { BodyMemory } from "./body-memory.ts";
import type { HeavyTurn } from "./heavy-turns.ts";
import { forbiddenKey, inexactNumber, isForbidden, notUtf8, tooHeavy } from "./json-refusals.ts";
import { parseInTurns } from "./parse-in-turns.ts";
import { Refusal } from "./refusal.ts";

/** Parses the body as JSON; undefined if it is empty. Never holds more than `limit` bytes. */
export async function readJsonBody(
  incoming: IncomingMessage,
  { limit, turn, memory }: { limit: number; turn: HeavyTurn; memory: BodyMemory },
): Promise<unknown> {
  const { "content-length": length, "content-type": type } = incoming.headers;
  if (length !== undefined && Number(length) > limit) throw tooLarge(limit);
  const bytes = await collect(incoming, limit, memory);
  if (bytes.length === 0) return undefined;
  if (!isJson(type)) {
    throw new Refusal(415, "DROVER-API-002", `The body must be application/json, not ${type ?? "without a type"}.`, {
      faults: [{ path: "header.content-type", message: "application/json expected" }],
    });
  }
  if (!isUtf8(bytes)) throw notUtf8();
  if (bytes.length > maxUnslicedBytes) return parseInTurns(bytes, turn);
  const { text, value } = parseJson(bytes);
  refuseForbiddenKeys(value);
  const inexact = findInexactNumber(text);
  if (inexact !== null) throw inexactNumber(inexact.path, inexact.text);
  return value;
}

/** Longer bodies are parsed in turns. JSON.parse handles shorter ones quickly, whatever they contain. */
const maxUnslicedBytes = 64 * 1024;

/** Throws a Refusal if the bytes are not UTF-8, not JSON, too deep or too large. */
export function parseJson(bytes: Uint8Array): { text: string; value: unknown } {
  // Checked before parsing: JSON.parse takes most of a second for a megabyte of brackets.
  const excess = findExceededLimit(bytes);
  if (excess !== null) throw tooHeavy(excess);
  if (!isUtf8(bytes)) throw notUtf8();
  const text = new TextDecoder().decode(bytes);
  return { text, value: parse(text) };
}

/** Enough for a few megabytes. */
const maxBodyMs = 120_000;

/** Uses events: for a small body, an async iterator costs more than everything else. */
function collect(incoming: IncomingMessage, limit: number, memory: BodyMemory): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const timer = setTimeout(() => cut(), maxBodyMs);
    const settle = (): void => {
      clearTimeout(timer);
      incoming.off("data", take).off("end", end).off("close", cut).off("error", cut);
    };
    const take = (bytes: Buffer): void => {
      size += bytes.length;
      chunks.push(bytes);
      const wait = memory.take(bytes.length);
      if (wait) incoming.pause();
      void wait?.then(() => incoming.resume());
      if (size <= limit) return;
      settle();
      incoming.pause();
      reject(tooLarge(limit));
    };
    const end = (): void => {
      settle();
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    };
    // The caller has disconnected and does not read this response.
    const cut = (): void => {
      settle();
      reject(new Refusal(400, "DROVER-API-029", "The request body was cut off."));
    };
    if (incoming.readableEnded) return end();
    if (incoming.destroyed) return cut();
    // Without an encoding, chunks are buffers.
    incoming.on("data", take).on("end", end).on("close", cut).on("error", cut);
  });
}

/** How long a refused body is read and discarded. */
const discardMs = 1000;

/**
 * Call before refusing a request whose body is still arriving: closing the connection at once would lose the response.
 * After `discardMs` the connection is closed regardless.
 */
export function discardBody(incoming: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    if (incoming.readableEnded || incoming.destroyed) return resolve();
    const timer = setTimeout(() => done(), discardMs);
    const done = (): void => {
      clearTimeout(timer);
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

function refuseForbiddenKeys(root: unknown): void {
  const waiting: Node[] = isBranch(root) ? [{ value: root, parent: null, key: "" }] : [];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    for (const key of Object.keys(node.value)) {
      if (isForbidden(key)) throw forbiddenKey([...pathOf(node), key]);
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

function pathOf(node: Node): (string | number)[] {
  const keys: (string | number)[] = [];
  for (let current: Node | null = node; current?.parent; current = current.parent)
    keys.unshift(Array.isArray(current.parent.value) ? Number(current.key) : current.key);
  return keys;
}
