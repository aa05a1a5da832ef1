import { existsSync } from "node:fs";
import { monotonicMs } from "../model/clock.ts";
import { BugError } from "../model/errors.ts";
import type { Blobs } from "../model/file.ts";
import type { Redactor } from "../model/process.ts";
import { readChainEnd } from "./audit/chain.ts";
import { openHead, openHeadCopy } from "./audit/head.ts";
import type { Seal } from "./audit/trail.ts";
import { createMac } from "../model/hmac.ts";
import { createMissingKeyError, readKey } from "./audit/key.ts";
import type { RecordStore } from "./record-store.ts";
import type { RescueResult } from "./rescue-record.ts";
import { createApply, createReads, createStoreIdReader } from "./store-parts.ts";
import { createChangeNotifier, type ChangeNotifier } from "./sqlite/changes.ts";
import type { Connection } from "./sqlite/connection.ts";
import { openSqliteEngine, type SqliteEngine } from "./sqlite/engine.ts";
import { toHostError } from "./sqlite/errors.ts";
import { createGroupCommit } from "./sqlite/group-commit.ts";
import { trackDatabaseFiles, isLost } from "./sqlite/database-files.ts";
import { createEmptyRecord } from "./state-directory.ts";
import { auditHeadFile, databaseFile } from "../model/state-layout.ts";
import { openWriter } from "./writer.ts";

export interface StoreOptions {
  /** The record directory, see src/model/state-layout.ts. */
  directory: string;
  /** File with a second copy of the audit chain's head, so that a missing record is noticed. */
  headCopy?: string | undefined;
  /** See `Seal`. */
  onMismatch?: Seal["onMismatch"];
  now: () => Date;
  /** Without it, opening a directory that has no database fails. */
  createIfMissing?: boolean;
  /** "read" needs neither the audit key nor a writable directory. */
  mode?: "read" | "write";
  /** Applied to every operation before it is stored. Omit it if the caller already redacts. */
  redactor?: Redactor;
  /** How long to wait for a locked database. */
  lockWaitMs?: number;
}

export interface SqliteStore extends RecordStore {
  readonly directory: string;
  readonly connection: Connection;
}

/** Dozens of commands may share a record, so under load a command may have to wait for many others. */
export const defaultLockWaitMs = 30_000;

export async function openStore(options: StoreOptions): Promise<SqliteStore> {
  const { directory, now, redactor, mode = "write", lockWaitMs: waitMs = defaultLockWaitMs } = options;
  const { headCopy, onMismatch } = options;
  const file = databaseFile(directory);
  if (options.createIfMissing && !existsSync(file)) createEmptyRecord(directory);
  const engine = await openSqliteEngine(file, mode, waitMs);
  const { connection } = engine;
  try {
    const { listen, publish, notifyOfForeignCommits }: ChangeNotifier = createChangeNotifier(connection);
    const key = mode === "read" ? null : (readKey(directory) ?? (await createFirstKey(directory, engine)));
    const computeMac = key === null ? null : createMac(key);
    const files = trackDatabaseFiles(file);
    const explainError = createErrorExplainer({ connection, directory, headCopy, key, now });
    const seal: Seal = {
      computeMac: computeMac ?? refuseToSeal,
      openHead: () => openHead(auditHeadFile(directory)),
      ...(headCopy === undefined ? {} : { openHeadCopy: () => openHeadCopy(headCopy) }),
      onMismatch,
    };
    const writer =
      computeMac === null
        ? null
        : openWriter(seal, publish, (work) => createGroupCommit({ ...work, connection, waitMs, files, now }));
    const { close: closeBlobs, ...blobs } = createLazyBlobs(directory);
    return {
      engine,
      directory,
      connection,
      now,
      seal,
      apply: createApply(writer, redactor, explainError),
      storeId: createStoreIdReader(engine),
      restoredAt: async () => engine.read((await import("./revoke-restored-tokens.ts")).readRestoredAt),
      read: createReads(engine, mode === "write"),
      blobs,
      storageError: () => explainError(files.checkWritable()),
      changes: listen,
      notifyOfForeignCommits,
      // Only commands share a SQLite record with the coordinator, and they listen to nothing.
      broadcast: () => undefined,
      onBroadcast: () => () => undefined,
      removeOutput: async (run_ids) => (await import("./retention-output.ts")).removeOutput(directory, run_ids),
      pruneBlobs: async (time, signal) => {
        const [{ pruneBlobs }, { createAbortableEngine }] = await Promise.all([
          import("./blobs/prune-blobs.ts"),
          import("./abortable.ts"),
        ]);
        return pruneBlobs({ engine: createAbortableEngine(engine, signal), directory }, time);
      },
      async close() {
        await closeBlobs();
        await writer?.close();
        connection.close();
      },
    };
  } catch (error) {
    connection.close();
    throw toHostError(error, file);
  }
}

/** If the record could not be rescued, retry on the first error after this delay. */
const rescueRetryMs = 10_000;

/**
 * Returns a function that adds the next step to an error. If the record's files have disappeared, it first rescues the
 * record, once per disappearance.
 */
function createErrorExplainer({ key, now, ...record }: RescueOptions): (error: unknown) => Promise<unknown> {
  let current: { since: number; result: Promise<RescueResult> } | null = null;
  return async (cause) => {
    if (cause === null) current = null;
    if (key === null || !isLost(cause)) return cause;
    const lastResult = await current?.result;
    if (lastResult?.file === null && monotonicMs() - current!.since > rescueRetryMs) current = null;
    current ??= {
      since: monotonicMs(),
      result: import("./rescue-record.ts").then(({ rescueRecord }) =>
        rescueRecord(cause, { ...record, key, now: now() }),
      ),
    };
    return (await current.result).error;
  };
}

interface RescueOptions {
  connection: Connection;
  directory: string;
  headCopy: string | undefined;
  /** null if opened for reading: then there is nothing to rescue. */
  key: Uint8Array | null;
  now: () => Date;
}

function refuseToSeal(): never {
  throw new BugError("a store opened for reading cannot seal anything");
}

async function createFirstKey(directory: string, engine: SqliteEngine): Promise<Uint8Array> {
  const { last_no } = await engine.read(readChainEnd);
  // Another process may have created the key since then and sealed rows with it, so read it again.
  const key = readKey(directory);
  if (key !== null) return key;
  if (last_no > 0) throw createMissingKeyError(directory);
  const { createKey } = await import("./audit/create-key.ts");
  return createKey(directory);
}

/** Loads the code for blobs on first use, because a cold `exec` has no files. */
function createLazyBlobs(directory: string): Blobs & { close(): Promise<void> } {
  const pendingPuts = new Set<Promise<unknown>>();
  return {
    put(content, expected, signal) {
      const pendingPut = import("./blobs/blobs.ts").then(({ putBlob }) =>
        putBlob(directory, content, expected, signal),
      );
      pendingPuts.add(pendingPut);
      return pendingPut.finally(() => pendingPuts.delete(pendingPut));
    },
    // An aborted upload still creates and removes its file; wait for that.
    close: async () => void (await Promise.allSettled(pendingPuts)),
    open: async (sha256) => (await import("./blobs/blobs.ts")).openBlob(directory, sha256),
  };
}
