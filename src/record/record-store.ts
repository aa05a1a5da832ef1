import type { Store } from "../model/store.ts";
import type { Engine } from "./engine.ts";
import type { Seal } from "./audit/trail.ts";

/** The store and what belongs to looking after it, on either engine. */
export interface RecordStore extends Store {
  readonly engine: Engine;
  readonly now: () => Date;
  readonly seal: Seal;
  /** Of this record and its backups alone, wherever it lies. */
  storeId(): Promise<string>;
  /** When it was last restored from a backup with its tokens revoked; null: never. */
  restoredAt(): Promise<string | null>;
  /** Why nothing can be stored now although the record can be read, e.g. because its file was deleted; null where it can. */
  placeFault(): Promise<unknown>;
  /** Looks whether another process has written, and tells the listeners of `changes` if so. */
  lookForForeign(): void;
  /** Passes something on to whoever else has this record open, kept nowhere: who does not listen now never hears of it. */
  tellOthers(text: string): void;
  /** What others pass on, until the returned function is called. */
  othersTell(listener: (text: string) => void): () => void;
  /** What runs have left beside the record. */
  removeOutput(run_ids: readonly string[]): Promise<void>;
  /** Removes contents that no run has (or is about to have) as a file, and what a crash left half written. */
  pruneBlobs(now: Date, signal?: AbortSignal): Promise<{ blobs: number }>;
}
