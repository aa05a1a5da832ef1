import { RequestError } from "../../model/errors.ts";
import { createHeadChecks } from "../audit/head-checks.ts";
import { createMissingKeyError, readKey } from "../audit/key.ts";
import type { VerifyResult } from "../audit/verify.ts";
import { type CopyResult, type CopyProgress, copyRecord } from "./copy-record.ts";
import { fillPostgres } from "./postgres-record.ts";
import { withLockedRecord } from "./sqlite-record.ts";
import { verifyCopy } from "./verify-copy.ts";

export interface MigrateOptions {
  directory: string;
  url: string;
  now: Date;
  lockWaitMs?: number;
  onProgress?: (progress: CopyProgress | { step: "verifying" }) => void;
}

export interface MigrateResult {
  copied: CopyResult;
  audit: VerifyResult;
}

/**
 * Copies the record of a state directory into an empty PostgreSQL database, sealed with the same key. Nobody can write to
 * the directory during the copy, and it is not changed. The copy is discarded unless it is identical and its chain
 * verifies.
 */
export async function migrateRecord({
  directory,
  url,
  now,
  lockWaitMs = 5000,
  onProgress = () => undefined,
}: MigrateOptions): Promise<MigrateResult> {
  return withLockedRecord(directory, lockWaitMs, async (from) => {
    const secret = readKey(directory);
    if (secret === null) throw createMissingKeyError(directory);
    // Read while nobody writes: the chain has to contain exactly these heads.
    const checks = createHeadChecks({ directory });
    return fillPostgres(url, now, async (to) => {
      const copied = await copyRecord(from, to, onProgress);
      onProgress({ step: "verifying" });
      const audit = await verifyCopy(to, secret, checks);
      // Damage that the chain itself records is copied with it.
      if (!audit.ok && !audit.first_bad?.wasReported)
        throw createBrokenChainError(directory, audit.first_bad?.what ?? "unknown");
      return { copied, audit };
    });
  });
}

function createBrokenChainError(directory: string, what: string): RequestError {
  return new RequestError({
    code: "DROVER-AUD-002",
    message: `The audit chain of ${directory} is broken: ${what}. Nothing was copied.`,
    field: directory,
    next: "Run drover audit verify for details, and see docs/migrating.md.",
  });
}
