import type { Store } from "../model/store.ts";
import type { Engine } from "./engine.ts";
import type { Seal } from "./writer.ts";

/** The store and what belongs to looking after it, on either engine. */
export interface RecordStore extends Store {
  readonly engine: Engine;
  readonly now: () => Date;
  readonly seal: Seal;
  /** Of this record and its backups alone, wherever it lies. */
  storeId(): Promise<string>;
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
