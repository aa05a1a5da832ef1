import { createHmac } from "node:crypto";
import { existsSync } from "node:fs";
import type { Engine } from "../engine.ts";
import type { Work } from "../query.ts";
import { openSqliteEngine } from "../sqlite/engine.ts";
import { walkStatements } from "../sqlite/walk-statements.ts";
import { databaseFile } from "../../model/state-layout.ts";
import { readChainEnd } from "./chain.ts";
import { createHeadChecks, type HeadCheck, type HeadWatch, type StoredHeads } from "./head-checks.ts";
import { type ChainHead, formatHead, readHeadCopy } from "./head.ts";
import type { ComputeMac } from "../../model/hmac.ts";
import { createMissingKeyError, readKey } from "./key.ts";
import { walkChain, type ChainDamage, type VerifiedPosition, type WalkStatements } from "./walk.ts";

/** `head` is a head that an earlier verify printed: `count:mac`, or only the mac. The chain must contain it. */
export interface VerifyOptions extends StoredHeads {
  lockWaitMs?: number;
}

export interface VerifyResult {
  ok: boolean;
  /** Number of rows up to the first damage. */
  rows: number;
  batches: number;
  /** Head at the last good batch. Keep it elsewhere and pass it to a later verify. */
  head: string;
  /** Rows and batches that retention removed; null if it removed none. */
  pruned: { rows: number; batches: number; before: string } | null;
  /** Present if not ok. */
  first_bad?: ChainDamage;
}

export async function verifyAudit({ lockWaitMs = 5000, ...heads }: VerifyOptions): Promise<VerifyResult> {
  const { directory, headCopy } = heads;
  const copiedHead = headCopy === undefined || existsSync(databaseFile(directory)) ? null : readHeadCopy(headCopy);
  if (copiedHead !== null && copiedHead.count > 0)
    return toVerifyResult(null, null, createMissingRecordError(directory, copiedHead));
  // Read the heads before the database: rows committed in between only put the database ahead, which is fine.
  const checks = createHeadChecks(heads);
  const engine = await openSqliteEngine(databaseFile(directory), "read", lockWaitMs);
  try {
    const key = readKey(directory);
    if (key === null && (await engine.read(readChainEnd)).last_no > 0) throw createMissingKeyError(directory);
    const computeMac = key === null ? createLazyMac(directory) : createVerifyingMac(key);
    return await verifyChain(engine, walkStatements, computeMac, checks);
  } finally {
    engine.close();
  }
}

function createMissingRecordError(directory: string, head: ChainHead): ChainDamage {
  const what = `the record in ${directory} is missing; it had ${head.count} rows and the head ${formatHead(head)}`;
  return { batch_no: null, what };
}

export function verifyChain(
  engine: Pick<Engine, "snapshot">,
  statements: WalkStatements,
  computeMac: ComputeMac,
  checks: readonly HeadCheck[],
  signal?: AbortSignal,
): Promise<VerifyResult> {
  return engine.snapshot(() => createAbortableWork(signal, verifySteps(statements, computeMac, checks)));
}

/** Throws the signal's reason before the next statement once it is aborted. */
function* createAbortableWork<T>(signal: AbortSignal | undefined, work: Work<T>): Work<T> {
  let step = work.next();
  while (step.done !== true) {
    signal?.throwIfAborted();
    step = work.next(yield step.value);
  }
  return step.value;
}

/** Uses node:crypto, which is slow to load but fast for a chain of a million rows. */
export function createVerifyingMac(key: Uint8Array): ComputeMac {
  return (message) => createHmac("sha256", key).update(message).digest();
}

/** Reads the key on first use. The record had no key and no rows yet; a writer creates the key before its first row. */
function createLazyMac(directory: string): ComputeMac {
  return (message) => {
    const key = readKey(directory);
    if (key === null) throw createMissingKeyError(directory);
    return createVerifyingMac(key)(message);
  };
}

function* verifySteps(
  statements: WalkStatements,
  computeMac: ComputeMac,
  checks: readonly HeadCheck[],
): Work<VerifyResult> {
  const watches = checks.map((createWatch) => createWatch());
  const progress: Progress = { position: null, pruned: null, recordedDamage: null };
  const damage = yield* walkChain(statements, computeMac, (position) => {
    if (progress.position === null && position.pruned_before !== null) progress.pruned = position;
    const headDamage = findDamage(watches, (watch) => watch.onPosition(position));
    if (headDamage !== null) return headDamage;
    progress.position = position;
    progress.recordedDamage ??= position.recordedDamage;
    return null;
  });
  // Report current damage before damage that the chain recorded earlier, which would otherwise hide it.
  return toVerifyResult(
    progress.position,
    progress.pruned,
    damage ?? findDamage(watches, (watch) => watch.onEnd(progress.position)) ?? progress.recordedDamage,
  );
}

interface Progress {
  /** The last position up to which the chain is intact. */
  position: VerifiedPosition | null;
  pruned: VerifiedPosition | null;
  recordedDamage: ChainDamage | null;
}

function toVerifyResult(
  position: VerifiedPosition | null,
  pruned: VerifiedPosition | null,
  damage: ChainDamage | null,
): VerifyResult {
  return {
    ok: damage === null,
    rows: (position?.last_no ?? 0) - (pruned?.last_no ?? 0),
    batches: (position?.batch_no ?? 0) - (pruned?.batch_no ?? 0),
    head: formatHead({
      count: position?.last_no ?? 0,
      mac: Buffer.from(position?.mac ?? [])
        .toString("hex")
        .padEnd(64, "0"),
    }),
    pruned:
      pruned === null ? null : { rows: pruned.last_no, batches: pruned.batch_no, before: pruned.pruned_before ?? "" },
    ...(damage === null ? {} : { first_bad: damage }),
  };
}

function findDamage(
  watches: readonly HeadWatch[],
  check: (watch: HeadWatch) => ChainDamage | null,
): ChainDamage | null {
  for (const watch of watches) {
    const damage = check(watch);
    if (damage !== null) return damage;
  }
  return null;
}
