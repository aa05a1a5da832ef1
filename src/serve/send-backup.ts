import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { disconnectStalled } from "./disconnect-stalled.ts";
import type { BackupFile } from "./deps.ts";
import { gzipHeader, emptyDeflateBlock, gzipBody } from "./gzip-keepalive.ts";

interface Sending {
  outgoing: ServerResponse;
  headers: Readonly<Record<string, string>>;
  acceptEncoding: string;
  /** After which an answer begins that is not there yet; and how often there are signs of it then. */
  signMs: number;
  /** Throws where whoever asked may not have it any more. */
  mayHaveIt(): Promise<void>;
}

/**
 * One that is made soon is sent as it is, with its length, and what goes wrong is answered as anywhere. For one that takes
 * longer the head goes out before it is there, so that nobody in between takes the answer for lost; where it may be
 * packed, with signs that mean nothing when it is unpacked. Then all that can be told is that it breaks off.
 */
export async function sendBackup(making: Promise<BackupFile>, sending: Sending): Promise<void> {
  const { outgoing, signMs, mayHaveIt } = sending;
  let signs: NodeJS.Timeout | null = null;
  let packed = false;
  const begin = setTimeout(() => {
    packed = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/i.test(sending.acceptEncoding);
    outgoing.writeHead(200, headOf(sending, packed ? { "content-encoding": "gzip" } : {}));
    if (!packed) return outgoing.flushHeaders();
    outgoing.write(gzipHeader);
    signs = setInterval(() => void outgoing.write(emptyDeflateBlock), signMs);
  }, signMs);
  const noMoreSigns = (): void => {
    clearTimeout(begin);
    if (signs !== null) clearInterval(signs);
  };
  try {
    const { file, dispose } = await making;
    try {
      await mayHaveIt();
      noMoreSigns();
      // the copy takes up the disk meanwhile
      disconnectStalled(outgoing);
      if (!outgoing.headersSent)
        outgoing.writeHead(200, headOf(sending, { "content-length": String((await stat(file)).size) }));
      if (packed) await pipeline(createReadStream(file), ...gzipBody(), outgoing);
      else await pipeline(createReadStream(file), outgoing);
    } finally {
      await dispose();
    }
  } finally {
    noMoreSigns();
  }
}

function headOf({ headers }: Sending, more: Record<string, string>): Record<string, string> {
  return {
    "content-type": "application/vnd.sqlite3",
    "cache-control": "no-store, no-transform",
    // proxies that gather answers before they pass them on
    "x-accel-buffering": "no",
    vary: "accept-encoding",
    ...headers,
    ...more,
  };
}
