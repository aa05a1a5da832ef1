import type { ServerResponse } from "node:http";
import type { Sink } from "../show/feed.ts";
import { disconnectStalled } from "./disconnect-stalled.ts";
import type { DeflateStream, SharedDeflate } from "./shared-deflate.ts";
import { whenClosed } from "./when-closed.ts";

export interface SseSink extends Sink {
  whenClosed(callback: () => void): void;
}

export interface SseSinkOptions {
  acceptEncoding: string;
  /** null: the stream is never compressed. */
  deflate: SharedDeflate | null;
  stalledMs?: number | undefined;
}

/**
 * Writes a feed to the response, with backpressure from its socket, compressed if the client accepts that. Disconnects a
 * client that stops reading.
 */
export function createSseSink(
  outgoing: ServerResponse,
  { acceptEncoding, deflate, stalledMs }: SseSinkOptions,
): SseSink {
  const stream: DeflateStream | null = deflate !== null && acceptsDeflate(acceptEncoding) ? deflate.open() : null;
  outgoing.writeHead(200, {
    ...(stream ? { "content-encoding": "deflate" } : {}),
    vary: "accept-encoding",
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    // Tells proxies not to buffer the response.
    "x-accel-buffering": "no",
  });
  if (stream) outgoing.write(stream.header);
  else outgoing.flushHeaders();
  disconnectStalled(outgoing, stalledMs);
  return {
    write: (bytes) => outgoing.write(stream ? stream.pack(bytes) : bytes),
    get bufferedBytes() {
      return outgoing.writableLength;
    },
    drained() {
      if (!outgoing.writableNeedDrain || outgoing.destroyed) return Promise.resolve();
      return new Promise((resolve) => {
        const done = (): void => {
          outgoing.off("drain", done);
          outgoing.off("close", done);
          resolve();
        };
        outgoing.on("drain", done);
        outgoing.on("close", done);
      });
    },
    end() {
      if (outgoing.writableEnded) return;
      outgoing.end(stream?.trailer());
    },
    whenClosed: (callback) => void whenClosed(outgoing, callback),
  };
}

/** Browsers and Node's fetch accept it. gzip would need a checksum that is expensive to compute for each reader. */
function acceptsDeflate(acceptEncoding: string): boolean {
  return acceptEncoding.split(",").some((entry) => {
    const [coding = "", ...parameters] = entry.split(";").map((part) => part.trim().toLowerCase());
    return coding === "deflate" && !parameters.some((parameter) => /^q\s*=\s*"?0(?:\.0*)?"?$/.test(parameter));
  });
}
