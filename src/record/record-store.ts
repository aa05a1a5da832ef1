import type { Store } from "../model/store.ts";
import type { Engine } from "./engine.ts";
import type { Seal } from "./audit/trail.ts";

/** The store together with its maintenance operations, on either engine. */
export interface RecordStore extends Store {
  readonly engine: Engine;
  readonly now: () => Date;
  readonly seal: Seal;
  /** Unique id of this record. Its backups share it. */
  storeId(): Promise<string>;
  /** When the record was last restored from a backup with its tokens revoked; null if never. */
  restoredAt(): Promise<string | null>;
  /** The error that writes would fail with, for example because the database file was deleted. null if writes work. */
  storageError(): Promise<unknown>;
  /** Checks whether another process has written, and if so notifies the listeners of `changes`. */
  notifyOfForeignCommits(): void;
  /** Sends a message to the other processes that have this record open. It is not stored: only current listeners get it. */
  broadcast(text: string): void;
  /** Listens to messages of other processes until the returned function is called. */
  onBroadcast(listener: (text: string) => void): () => void;
  /** Removes the output files of runs, which are stored beside the database. */
  removeOutput(run_ids: readonly string[]): Promise<void>;
  /** Removes contents that no file or pending upload refers to, and partial files left by a crash. */
  pruneBlobs(now: Date, signal?: AbortSignal): Promise<{ blobs: number }>;
}
