import { randomBytes } from "node:crypto";
import type { Redactor } from "../../model/process.ts";
import { createMac } from "../../model/hmac.ts";
import { isSealedWith } from "../audit/is-sealed-with.ts";
import { first, type Work } from "../query.ts";
import type { RecordStore } from "../record-store.ts";
import { createAbortableEngine } from "../abortable.ts";
import { createApply, createReads, createStoreIdReader } from "../store-parts.ts";
import { openWriter } from "../writer.ts";
import { createPostgresBlobs, prunePostgresBlobs } from "./blobs.ts";
import { liveChannel, openChangeNotifier } from "./changes.ts";
import { openPostgresEngine } from "./engine.ts";
import { createWrongSecretError, toHostError } from "./errors.ts";
import { createGroupCommit } from "./group-commit.ts";
import { openLink } from "./link.ts";
import { migrate } from "./migrations/migrate.ts";
import { idleTransactionMs } from "./limits.ts";
import { batchTokenReads } from "./batch-tokens.ts";

export interface PostgresOptions {
  url: string;
  /** Seals the audit chain. All processes that write to this record must use the same secret. */
  secret: Uint8Array;
  /** Replaces the database's clock. */
  now?: () => Date;
  redactor?: Redactor;
  /** How long to wait while the database is down. */
  outageWaitMs?: number;
  /** Errors of the connection that listens to other coordinators' commits. It reconnects automatically. */
  onError?(error: unknown): void;
}

const checkEveryMs = 2000;

/** Opens the record of a fleet. Any number of processes may open it at the same time. Nothing is stored on their disks. */
export async function openPostgresStore(options: PostgresOptions): Promise<RecordStore> {
  const { url, secret, redactor, outageWaitMs = 5000 } = options;
  const onError = (error: unknown): void => options.onError?.(toHostError(error, url));
  await migrate(url);
  const now = options.now ?? (() => new Date());
  const instanceId = randomBytes(8).toString("hex");
  const engine = openPostgresEngine(url, outageWaitMs, instanceId);
  const seal = { computeMac: createMac(secret), openHead: () => null };
  if (!(await engine.read(() => isSealedWith(seal.computeMac)))) {
    engine.close();
    throw createWrongSecretError(url);
  }
  const link = openLink({ url, outageWaitMs, idleInTransactionMs: idleTransactionMs, byIndexOnly: true });
  const changes = openChangeNotifier(url, instanceId, onError);
  const writer = openWriter(seal, changes.publish, (work) =>
    createGroupCommit({
      ...work,
      link,
      createNotice: changes.createNotice,
      ...(options.now ? { now: options.now } : {}),
    }),
  );
  let checkedAt = 0;
  return {
    engine,
    now,
    seal,
    apply: createApply(writer, redactor),
    storeId: createStoreIdReader(engine),
    restoredAt: async () => engine.read((await import("../revoke-restored-tokens.ts")).readRestoredAt),
    read: { ...createReads(engine, true), token: batchTokenReads(engine) },
    blobs: createPostgresBlobs(engine, options.now),
    changes: changes.listen,
    // A database server looks after its own files.
    storageError: async () => null,
    notifyOfForeignCommits() {
      if (performance.now() - checkedAt < checkEveryMs) return;
      checkedAt = performance.now();
      engine.read(readCommitCount).then(changes.compare, onError);
    },
    broadcast(text) {
      const notice = changes.createBroadcastNotice(text);
      if (notice === null) return;
      engine
        .useReader((connection) => connection.exec(`select pg_notify('${liveChannel}', ${connection.quote(notice)})`))
        .catch(onError);
    },
    onBroadcast: changes.onBroadcast,
    removeOutput: async () => undefined,
    pruneBlobs: (at, signal) =>
      prunePostgresBlobs(createAbortableEngine(engine, signal), options.now === undefined ? null : at),
    async close() {
      await writer.close();
      changes.stop();
      link.close();
      engine.close();
    },
  };
}

function* readCommitCount(): Work<number> {
  const [row] = yield first("select commits from store");
  return Number(row?.["commits"]);
}
