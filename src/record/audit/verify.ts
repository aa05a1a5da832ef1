import { createHmac } from "node:crypto";
import { existsSync } from "node:fs";
import type { Engine } from "../engine.ts";
import type { Work } from "../query.ts";
import { openSqliteEngine } from "../sqlite/engine.ts";
import { walkStatements } from "../sqlite/walk-statements.ts";
import { databaseFile } from "../../model/state-layout.ts";
import { chainEnd } from "./chain.ts";
import { headChecks, type HeadCheck, type HeadWatch, type KeptHeads } from "./head-checks.ts";
import { type ChainHead, formatHead, readHeadCopy } from "./head.ts";
import type { Mac } from "../../model/hmac.ts";
import { missingKey, readKey } from "./key.ts";
import { walkChain, type BadPlace, type CheckedPlace, type WalkStatements } from "./walk.ts";

/** `head` is the head that an earlier verify printed, `count:mac` or only the mac. The chain must contain it. */
export interface VerifyOptions extends KeptHeads {
  lockWaitMs?: number;
}

export interface Verified {
  ok: boolean;
  /** Rows that are unchanged. */
  rows: number;
  batches: number;
  /** Head at the last good batch. Keep it elsewhere and pass it to a later verify. */
  head: string;
  /** What retention removed before the first remaining row. */
  pruned: { rows: number; batches: number; before: string } | null;
  /** Present if not ok. */
  first_bad?: BadPlace;
}

export async function verifyAudit({ lockWaitMs = 5000, ...heads }: VerifyOptions): Promise<Verified> {
  const { directory, headCopy } = heads;
  const gone = headCopy === undefined || existsSync(databaseFile(directory)) ? null : readHeadCopy(headCopy);
  if (gone !== null && gone.count > 0) return verified(null, null, goneRecord(directory, gone));
  // Read the heads before the database: rows committed in between only put the database ahead, which is fine.
  const checks = headChecks(heads);
  const engine = await openSqliteEngine(databaseFile(directory), "read", lockWaitMs);
  try {
    const key = readKey(directory);
    if (key === null && (await engine.read(chainEnd)).last_no > 0) throw missingKey(directory);
    const mac = key === null ? lazyMac(directory) : verifyingMac(key);
    return await verifyChain(engine, walkStatements, mac, checks);
  } finally {
    engine.close();
  }
}

function goneRecord(directory: string, head: ChainHead): BadPlace {
  const what = `there is no record in ${directory}, but there was one of ${head.count} rows, with the head ${formatHead(head)}`;
  return { batch_no: null, what };
}

export function verifyChain(
  engine: Pick<Engine, "snapshot">,
  statements: WalkStatements,
  mac: Mac,
  checks: readonly HeadCheck[],
  signal?: AbortSignal,
): Promise<Verified> {
  return engine.snapshot(() => abortable(signal, follow(statements, mac, checks)));
}

/** Throws the signal's reason before the next statement once it is aborted. */
function* abortable<T>(signal: AbortSignal | undefined, work: Work<T>): Work<T> {
  let step = work.next();
  while (step.done !== true) {
    signal?.throwIfAborted();
    step = work.next(yield step.value);
  }
  return step.value;
}

/** node:crypto takes a while to load, which pays off for a chain of a million rows. */
export function verifyingMac(key: Uint8Array): Mac {
  return (message) => createHmac("sha256", key).update(message).digest();
}

/** There was no key and no row. If a row was written since, its writer created the key first. */
function lazyMac(directory: string): Mac {
  return (message) => {
    const key = readKey(directory);
    if (key === null) throw missingKey(directory);
    return verifyingMac(key)(message);
  };
}

function* follow(statements: WalkStatements, mac: Mac, checks: readonly HeadCheck[]): Work<Verified> {
  const watches = checks.map((begin) => begin());
  const seen: Seen = { place: null, pruned: null, told: null };
  const bad = yield* walkChain(statements, mac, (place) => {
    if (seen.place === null && place.pruned_before !== null) seen.pruned = place;
    const missed = firstOf(watches, (watch) => watch.at(place));
    if (missed !== null) return missed;
    seen.place = place;
    seen.told ??= place.told;
    return null;
  });
  // Report current damage before damage that the chain recorded earlier, which would otherwise hide it.
  return verified(seen.place, seen.pruned, bad ?? firstOf(watches, (watch) => watch.atEnd(seen.place)) ?? seen.told);
}

interface Seen {
  /** The last good place. */
  place: CheckedPlace | null;
  pruned: CheckedPlace | null;
  told: BadPlace | null;
}

function verified(place: CheckedPlace | null, pruned: CheckedPlace | null, bad: BadPlace | null): Verified {
  return {
    ok: bad === null,
    rows: (place?.last_no ?? 0) - (pruned?.last_no ?? 0),
    batches: (place?.batch_no ?? 0) - (pruned?.batch_no ?? 0),
    head: formatHead({
      count: place?.last_no ?? 0,
      mac: Buffer.from(place?.mac ?? [])
        .toString("hex")
        .padEnd(64, "0"),
    }),
    pruned:
      pruned === null ? null : { rows: pruned.last_no, batches: pruned.batch_no, before: pruned.pruned_before ?? "" },
    ...(bad === null ? {} : { first_bad: bad }),
  };
}

function firstOf(watches: readonly HeadWatch[], look: (watch: HeadWatch) => BadPlace | null): BadPlace | null {
  for (const watch of watches) {
    const bad = look(watch);
    if (bad !== null) return bad;
  }
  return null;
}
