import { existsSync } from "node:fs";
import { BugError } from "../model/errors.ts";
import type { Blobs } from "../model/file.ts";
import type { Redactor } from "../model/process.ts";
import { chainEnd } from "./audit/chain.ts";
import { openHead } from "./audit/head.ts";
import { hmacWith } from "./audit/hmac.ts";
import { missingKey, readKey } from "./audit/key.ts";
import type { RecordStore } from "./record-store.ts";
import { applyWith, readsOf, storeIdOf } from "./store-parts.ts";
import { openChanges, type Changes } from "./sqlite/changes.ts";
import type { Connection } from "./sqlite/connection.ts";
import { openSqliteEngine, type SqliteEngine } from "./sqlite/engine.ts";
import { hostFault } from "./sqlite/faults.ts";
import { groupCommit } from "./sqlite/group-commit.ts";
import { createStateDirectory, databaseFile } from "./state-directory.ts";
import { openWriter } from "./writer.ts";

export interface StoreOptions {
  directory: string;
  now: () => Date;
  /** Without it, a directory that has no database is an error. */
  createIfMissing?: boolean;
  /** "read" needs neither the audit key nor a writable directory. */
  mode?: "read" | "write";
  /** Applied to every operation before it is stored. Callers that have redacted leave it out. */
  redactor?: Redactor;
  /** How long a locked database is waited for. */
  lockWaitMs?: number;
}

export interface SqliteStore extends RecordStore {
  readonly directory: string;
  readonly connection: Connection;
}

/** Dozens of commands may share a record: under load one that is unlucky waits for many turns of the others. */
export const defaultLockWaitMs = 30_000;

/** The record of a state directory. */
export async function openStore(options: StoreOptions): Promise<SqliteStore> {
  const { directory, now, redactor, mode = "write", lockWaitMs: waitMs = defaultLockWaitMs } = options;
  const file = databaseFile(directory);
  if (options.createIfMissing && !existsSync(file)) createStateDirectory(directory);
  const engine = await openSqliteEngine(file, mode, waitMs);
  const { connection } = engine;
  try {
    const { listen, publish, lookForForeign }: Changes = openChanges(connection);
    const mac = mode === "read" ? null : hmacWith(readKey(directory) ?? (await firstKey(directory, engine)));
    const seal = { mac: mac ?? refuseToSeal, openHead: () => openHead(directory) };
    const writer =
      mac === null ? null : openWriter(seal, publish, (work) => groupCommit({ ...work, connection, waitMs, now }));
    const { close: closeBlobs, ...blobs } = lazyBlobs(directory);
    return {
      engine,
      directory,
      connection,
      now,
      seal,
      apply: applyWith(writer, redactor),
      storeId: storeIdOf(engine),
      read: readsOf(engine, mode === "write"),
      blobs,
      changes: listen,
      lookForForeign,
      // Whoever else has it open is a command that came to write or to look something up.
      tellOthers: () => undefined,
      othersTell: () => () => undefined,
      removeOutput: async (run_ids) => (await import("./retention-output.ts")).removeOutput(directory, run_ids),
      pruneBlobs: async (at, signal) => {
        const [{ pruneBlobs }, { stoppableEngine }] = await Promise.all([
          import("./blobs/prune-blobs.ts"),
          import("./stoppable.ts"),
        ]);
        return pruneBlobs({ engine: stoppableEngine(engine, signal), directory }, at);
      },
      async close() {
        await closeBlobs();
        await writer?.close();
        connection.close();
      },
    };
  } catch (fault) {
    connection.close();
    throw hostFault(fault, file);
  }
}

function refuseToSeal(): never {
  throw new BugError("a store opened for reading cannot seal anything");
}

async function firstKey(directory: string, engine: SqliteEngine): Promise<Uint8Array> {
  const { last_no } = await engine.read(chainEnd);
  // Another process may have created it since, and sealed rows with it: look again before calling it missing.
  const key = readKey(directory);
  if (key !== null) return key;
  if (last_no > 0) throw missingKey(directory);
  const { createKey } = await import("./audit/create-key.ts");
  return createKey(directory);
}

/** As with the rarer reads: a cold `exec` has no files. */
function lazyBlobs(directory: string): Blobs & { close(): Promise<void> } {
  const writing = new Set<Promise<unknown>>();
  return {
    put(content, announced, signal) {
      const put = import("./blobs/blobs.ts").then(({ putBlob }) => putBlob(directory, content, announced, signal));
      writing.add(put);
      return put.finally(() => writing.delete(put));
    },
    // One whose sender has gone still makes and removes its file, and nobody else waits for it.
    close: async () => void (await Promise.allSettled(writing)),
    open: async (sha256) => (await import("./blobs/blobs.ts")).openBlob(directory, sha256),
  };
}
