import { RequestError } from "../../model/errors.ts";
import { headChecks } from "../audit/expected-head.ts";
import { missingKey, readKey } from "../audit/key.ts";
import type { Verified } from "../audit/verify.ts";
import { type Copied, type CopyProgress, copyRecord } from "./copy-record.ts";
import { intoPostgres } from "./postgres-record.ts";
import { holdDirectory } from "./sqlite-record.ts";
import { verifyCopy } from "./verify-copy.ts";

export interface MigrateOptions {
  directory: string;
  url: string;
  now: Date;
  lockWaitMs?: number;
  onProgress?: (progress: CopyProgress | { doing: "verifying" }) => void;
}

export interface Migrated {
  copied: Copied;
  audit: Verified;
}

/**
 * The record of a state directory into an empty PostgreSQL database, sealed with the same key. Nobody writes to it
 * meanwhile, nothing of it is changed, and the copy is there only if it is the same and its chain verifies.
 */
export async function migrateRecord({
  directory,
  url,
  now,
  lockWaitMs = 5000,
  onProgress = () => undefined,
}: MigrateOptions): Promise<Migrated> {
  return holdDirectory(directory, lockWaitMs, async (from) => {
    const secret = readKey(directory);
    if (secret === null) throw missingKey(directory);
    // read while nobody writes: the chain must have come as far, and have come there this way
    const checks = headChecks({ directory });
    return intoPostgres(url, now, async (to) => {
      const copied = await copyRecord(from, to, onProgress);
      onProgress({ doing: "verifying" });
      const audit = await verifyCopy(to, secret, checks);
      // What the chain itself tells of the past goes along.
      if (!audit.ok && !audit.first_bad?.told) throw broken(directory, audit.first_bad?.what ?? "unknown");
      return { copied, audit };
    });
  });
}

function broken(directory: string, what: string): RequestError {
  return new RequestError({
    code: "DROVER-AUD-002",
    message: `The audit chain of ${directory} is broken: ${what}. Nothing was copied.`,
    field: directory,
    next: "Look with drover audit verify, and see docs/migrating.md.",
  });
}
