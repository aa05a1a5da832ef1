import type { IncomingMessage } from "node:http";
import { Refusal } from "../refusal.ts";
import type { BodyMemory } from "./body-memory.ts";
import type { LargeBody } from "./large-bodies.ts";
import { parseBody } from "./parse-body.ts";

export interface ReadBodyOptions {
  limit: number;
  memory: BodyMemory;
  /** Called when the body turns out to be too large for the event loop. */
  openLarge(): LargeBody;
}

/** JSON.parse handles bodies up to this size quickly, whatever they contain. */
const maxSmallBytes = 64 * 1024;
/** How long a body may take to arrive. This is enough for a few megabytes. */
const maxBodyMs = 120_000;

/** Parses the body as JSON. Returns undefined if it is empty. Never holds more than `limit` bytes. */
export async function readJsonBody(incoming: IncomingMessage, options: ReadBodyOptions): Promise<unknown> {
  const { "content-length": length, "content-type": type } = incoming.headers;
  if (length !== undefined && Number(length) > options.limit) throw tooLarge(options.limit);
  const body = await collect(incoming, isJson(type), options);
  if (!(body instanceof Uint8Array)) return body.end();
  if (body.length === 0) return undefined;
  if (!isJson(type)) throw notJsonType(type);
  return parseBody(body);
}

/**
 * Reads the body, or sends it to the thread for large bodies as it arrives. Uses events: for a small body, an async
 * iterator costs more than everything else.
 */
function collect(
  incoming: IncomingMessage,
  isJsonType: boolean,
  { limit, memory, openLarge }: ReadBodyOptions,
): Promise<Uint8Array | LargeBody> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let large: LargeBody | null = null;
    let size = 0;
    const timer = setTimeout(() => onCutOff(), maxBodyMs);
    const settle = (): void => {
      clearTimeout(timer);
      incoming.off("data", onData).off("end", onEnd).off("close", onCutOff).off("error", onCutOff);
    };
    const refuse = (refusal: Refusal): void => {
      settle();
      large?.drop();
      reject(refusal);
    };
    const onData = (bytes: Buffer): void => {
      size += bytes.length;
      const wait = memory.add(bytes.length);
      if (wait) incoming.pause();
      void wait?.then(() => incoming.resume());
      if (size > limit || (size > maxSmallBytes && !isJsonType)) {
        incoming.pause();
        return refuse(size > limit ? tooLarge(limit) : notJsonType(incoming.headers["content-type"]));
      }
      chunks.push(bytes);
      if (size <= maxSmallBytes) return;
      large ??= openLarge();
      for (const chunk of chunks.splice(0)) large.push(chunk);
    };
    const onEnd = (): void => {
      settle();
      resolve(large ?? (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    };
    // The caller has disconnected and does not read this response.
    const onCutOff = (): void => refuse(new Refusal(400, "DROVER-API-029", "The request body was cut off."));
    if (incoming.readableEnded) return onEnd();
    if (incoming.destroyed) return onCutOff();
    // Without an encoding, chunks are buffers.
    incoming.on("data", onData).on("end", onEnd).on("close", onCutOff).on("error", onCutOff);
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

function notJsonType(type: string | undefined): Refusal {
  return new Refusal(415, "DROVER-API-002", `The body must be application/json, not ${type ?? "without a type"}.`, {
    faults: [{ path: "header.content-type", message: "application/json expected" }],
  });
}

function isJson(type: string | undefined): boolean {
  return /^application\/json\s*(?:;|$)/i.test(type ?? "");
}
