import type { ServerResponse } from "node:http";
import type { Sink } from "../show/feed.ts";
import { disconnectStalled } from "./disconnect-stalled.ts";
import { whenClosed } from "./when-closed.ts";

export interface SseSink extends Sink {
  whenClosed(callback: () => void): void;
}

/** Writes a feed to the response, with backpressure from its socket. Disconnects a client that stops reading. */
export function createSseSink(outgoing: ServerResponse, stalledMs?: number): SseSink {
  outgoing.writeHead(200, {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    // Tells proxies not to buffer the response.
    "x-accel-buffering": "no",
  });
  outgoing.flushHeaders();
  disconnectStalled(outgoing, stalledMs);
  return {
    write: (bytes) => outgoing.write(bytes),
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
    end: () => void outgoing.end(),
    whenClosed: (callback) => void whenClosed(outgoing, callback),
  };
}
