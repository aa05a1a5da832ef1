import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { RequestError } from "../../model/errors.ts";
import { createHeadCheck } from "../audit/head-checks.ts";
import { createRestoreError, readExtras, type RestoreResult, type RestoreOptions } from "../backup-file.ts";
import { revokeRestoredTokens } from "../revoke-restored-tokens.ts";
import { connect } from "../sqlite/connection.ts";
import { migrate } from "../sqlite/migrations/migrate.ts";
import { schemaVersion } from "../sqlite/migrations/version.ts";
import { createRecordDirectory } from "../state-directory.ts";
import { copyRecord } from "./copy-record.ts";
import { fillPostgres } from "./postgres-record.ts";
import { withBackup } from "./sqlite-record.ts";
import { verifyCopy } from "./verify-copy.ts";

/** Restores a backup into an empty database. */
export async function restoreIntoPostgres(
  { url, secret }: { url: string; secret: Uint8Array },
  file: string,
  { now, keepTokens = false, copyDirectory = dirname(file), beforePublish }: RestoreOptions,
): Promise<RestoreResult> {
  const { version, audit_key, audit_head, made_at } = readExtras(file);
  if (audit_key !== null && Buffer.compare(audit_key, secret) !== 0) throw createWrongSecretError(file);
  return withCurrentSchema(file, version, copyDirectory, (source) =>
    withBackup(source, (from) =>
      fillPostgres(url, now, async (to) => {
        await copyRecord(from, to);
        const audit = await verifyCopy(to, secret, [createHeadCheck(audit_head)]);
        if (!audit.ok && !audit.first_bad?.wasReported)
          throw createRestoreError(file, `its audit chain is broken (${audit.first_bad?.what ?? "unknown"})`);
        const revoked_tokens = keepTokens ? null : await to.runWork(revokeRestoredTokens(made_at, now));
        beforePublish?.();
        return { made_at, audit, revoked_tokens };
      }),
    ),
  );
}

/** Migrates an older backup in a temporary copy, so that the file itself stays unchanged. */
async function withCurrentSchema<T>(
  file: string,
  version: number,
  copyDirectory: string,
  work: (file: string) => Promise<T>,
): Promise<T> {
  if (version === schemaVersion) return work(file);
  createRecordDirectory(copyDirectory);
  const directory = mkdtempSync(join(copyDirectory, "drover-restore-"));
  try {
    const copy = join(directory, "copy");
    copyFileSync(file, copy);
    const connection = connect(copy, "write");
    try {
      await migrate(connection, 0);
      connection.exec("pragma journal_mode = delete");
    } finally {
      connection.close();
    }
    return await work(copy);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function createWrongSecretError(file: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message: `The secret does not match: the record in ${file} is sealed with another one.`,
    field: "DROVER_SECRET",
    next: "Set DROVER_SECRET to the secret of the coordinators that used this record. If it is lost, restore the file into a state directory (without DATABASE_URL); the secret is then in its audit.key.",
  });
}
