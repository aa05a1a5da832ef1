import type { Store } from "../../model/store.ts";
import { createApply, createReads } from "../store-parts.ts";
import { createPostgresBlobs } from "./blobs.ts";
import { openPostgresEngine } from "./engine.ts";
import { requireRecord } from "./require-record.ts";

export interface RecordReader extends Pick<Store, "read" | "blobs" | "apply"> {
  close(): void;
}

const outageWaitMs = 5000;

/**
 * Opens the record of a fleet for a command that only reads. It does not listen for changes, and refuses all operations.
 */
export async function openPostgresReader(url: string): Promise<RecordReader> {
  await requireRecord(url);
  const engine = openPostgresEngine(url, outageWaitMs);
  return {
    read: createReads(engine, false),
    blobs: createPostgresBlobs(engine),
    apply: createApply(null, undefined),
    close: engine.close,
  };
}
