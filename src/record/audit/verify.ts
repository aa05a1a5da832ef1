import { createHmac } from "node:crypto";
import type { Connection } from "../sqlite/connection.ts";
import { hostFault } from "../sqlite/faults.ts";
import { openConnection } from "../sqlite/open-connection.ts";
import { patiently } from "../sqlite/patience.ts";
import { databaseFile } from "../state-directory.ts";
import { chainEnd } from "./chain.ts";
import { headChecks, type HeadCheck } from "./expected-head.ts";
import { formatHead } from "./head.ts";
import type { Mac } from "./hmac.ts";
import { missingKey, readKey } from "./key.ts";
import { walkChain, type BadPlace, type CheckedPlace } from "./walk.ts";

export interface VerifyOptions {
  directory: string;
  /** What an earlier verify printed, `count:mac` or the mac alone: it must be in the chain. */
  head?: string;
  lockWaitMs?: number;
}

export interface Verified {
  ok: boolean;
  /** Found to be as they were written. */
  rows: number;
  batches: number;
  /** Of the last good batch: keep it elsewhere, and give it to a later verify. */
  head: string;
  /** What retention took away before the rows that are here. */
  pruned: { rows: number; batches: number; before: string } | null;
  /** There where it is not ok. */
  first_bad?: BadPlace;
}

export async function verifyAudit({ directory, head, lockWaitMs = 5000 }: VerifyOptions): Promise<Verified> {
  // Read before the database: what is committed meanwhile makes the database ahead, which is fine.
  const checks = headChecks(directory, head);
  const file = databaseFile(directory);
  const connection = await openConnection(file, "read", lockWaitMs);
  try {
    await patiently(() => connection.exec("begin; select count(*) from audit_anchors"), file, lockWaitMs);
    return walk(connection, verifierKey(directory, connection), checks);
  } catch (fault) {
    throw hostFault(fault, file);
  } finally {
    connection.close();
  }
}

function walk(connection: Connection, mac: Mac, checks: HeadCheck[]): Verified {
  const steps = walkChain(connection, mac);
  try {
    return follow(steps, checks);
  } finally {
    steps.return(null);
    connection.exec("rollback");
  }
}

function follow(steps: ReturnType<typeof walkChain>, checks: HeadCheck[]): Verified {
  let place: CheckedPlace | null = null;
  let pruned: CheckedPlace | null = null;
  let told: BadPlace | null = null;
  for (;;) {
    const step = steps.next();
    if (step.done) {
      // What is wrong now comes before what the chain tells of the past, or it would never be seen.
      const bad = step.value ?? firstOf(checks, (check) => check.atEnd(place)) ?? told;
      return verified(place, pruned, bad);
    }
    if (place === null && step.value.pruned_before !== null) pruned = step.value;
    const bad = firstOf(checks, (check) => check.at(step.value));
    if (bad !== null) return verified(place, pruned, bad);
    place = step.value;
    told ??= place.told;
  }
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

/** A chain of a million rows is worth loading node:crypto for. */
function verifierKey(directory: string, connection: Connection): Mac {
  const key = readKey(directory);
  if (key === null && chainEnd(connection).last_no > 0) throw missingKey(directory);
  return (message) =>
    createHmac("sha256", key ?? "")
      .update(message)
      .digest();
}

function firstOf(checks: HeadCheck[], look: (check: HeadCheck) => BadPlace | null): BadPlace | null {
  for (const check of checks) {
    const bad = look(check);
    if (bad !== null) return bad;
  }
  return null;
}
