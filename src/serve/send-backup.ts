import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { disconnectStalled } from "./disconnect-stalled.ts";
import type { BackupFile } from "./deps.ts";
import { gzipHeader, emptyDeflateBlock, createGzipBody } from "./gzip-keepalive.ts";

interface BackupTarget {
  outgoing: ServerResponse;
  headers: Readonly<Record<string, string>>;
  acceptEncoding: string;
  /** If the copy takes longer, the response starts without it. Keepalives follow at the same interval. */
  keepaliveMs: number;
  /** Throws if the caller is no longer allowed to have the backup. */
  assertAllowed(): Promise<void>;
}

/**
 * Sends a copy that is ready soon uncompressed with its length, and errors as ordinary responses. If it takes longer,
 * the headers are sent before the copy is ready, so that no proxy times out. If the client accepts gzip, empty deflate
 * blocks follow as keepalives. From then on, an error can only be signalled by closing the connection.
 */
export async function sendBackup(pendingBackup: Promise<BackupFile>, target: BackupTarget): Promise<void> {
  const { outgoing, keepaliveMs, assertAllowed } = target;
  let keepalives: NodeJS.Timeout | null = null;
  let usesGzip = false;
  const beginTimer = setTimeout(() => {
    usesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/i.test(target.acceptEncoding);
    outgoing.writeHead(200, buildHeaders(target, usesGzip ? { "content-encoding": "gzip" } : {}));
    if (!usesGzip) return outgoing.flushHeaders();
    outgoing.write(gzipHeader);
    keepalives = setInterval(() => void outgoing.write(emptyDeflateBlock), keepaliveMs);
  }, keepaliveMs);
  const stopKeepalives = (): void => {
    clearTimeout(beginTimer);
    if (keepalives !== null) clearInterval(keepalives);
  };
  try {
    const { file, dispose } = await pendingBackup;
    try {
      await assertAllowed();
      stopKeepalives();
      // The copy occupies disk space until it is downloaded.
      disconnectStalled(outgoing);
      if (!outgoing.headersSent)
        outgoing.writeHead(200, buildHeaders(target, { "content-length": String((await stat(file)).size) }));
      if (usesGzip) await pipeline(createReadStream(file), ...createGzipBody(), outgoing);
      else await pipeline(createReadStream(file), outgoing);
    } finally {
      await dispose();
    }
  } finally {
    stopKeepalives();
  }
}

function buildHeaders({ headers }: BackupTarget, extraHeaders: Record<string, string>): Record<string, string> {
  return {
    "content-type": "application/vnd.sqlite3",
    "cache-control": "no-store, no-transform",
    // Tells proxies not to buffer the response.
    "x-accel-buffering": "no",
    vary: "accept-encoding",
    ...headers,
    ...extraHeaders,
  };
}
