import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { BugError, HostError } from "../../model/errors.ts";
import { type Blobs, isSha256 } from "../../model/file.ts";
import { pruneUploads } from "../blobs/prune-uploads.ts";
import { pruneInPages, type PruneTarget } from "../prune-in-pages.ts";
import { first, type Row, type SqlValue, type Work, write } from "../query.ts";
import type { PostgresEngine } from "./engine.ts";

/** Writers and readers hold one part in memory. */
export const partSize = 256 * 1024;
/** Contents are stored before any row refers to them, so more recent contents may still be needed. */
const minAgeMs = 60 * 60 * 1000;

/** The given time or, without one, the time of the database's clock, the only clock that all coordinators share. */
const currentTime = `coalesce(?::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint)`;

const insertPart = `
  insert into blob_parts (upload_id, part, stored_at, bytes) values (?, ?, ${currentTime}, ?) on conflict do nothing returning part`;
const insertBlob = `
  insert into blobs (sha256, size, upload_id, stored_at) values (?, ?, ?, ${currentTime})
  on conflict (sha256) do update set stored_at = excluded.stored_at returning upload_id`;
const deleteParts = `delete from blob_parts where upload_id = ?`;
const selectBlob = `select size, upload_id from blobs where sha256 = ?`;
const selectPart = `select bytes from blob_parts where upload_id = ? and part = ?`;
const selectNow = `select ${currentTime} as now`;

/** Uploading the same contents again renews them without the lock, so their age is checked on the row being deleted. */
const unusedBlobs: PruneTarget = {
  table: "blobs",
  key: "sha256",
  from: "",
  condition: `stored_at < ?3
    and not exists (select 1 from files where files.sha256 = blobs.sha256)
    and not exists (select 1 from uploads where uploads.sha256 = blobs.sha256)`,
  returning: "upload_id",
};
/** Does not match a slow upload: its last part is recent. */
const orphanedParts: PruneTarget = {
  table: "blob_parts",
  key: "upload_id",
  from: "",
  condition: `not exists (select 1 from blobs where blobs.upload_id = blob_parts.upload_id)
    and not exists (
      select 1 from blob_parts other where other.upload_id = blob_parts.upload_id and other.stored_at >= ?3)`,
};

/** Stores contents in the database itself, so that any coordinator can serve what another has received. */
export function createPostgresBlobs(engine: PostgresEngine, clock?: () => Date): Blobs {
  const getTimeOverride = (): number | null => clock?.().getTime() ?? null;
  return {
    async put(content, { sha256, size }, signal) {
      if (!isSha256(sha256)) return "mismatch";
      const upload_id = randomBytes(16).toString("hex");
      const storedHash = await storeParts(upload_id, content, size, signal);
      if (storedHash !== sha256) {
        await engine.read(() => deleteUpload(upload_id));
        return "mismatch";
      }
      await engine.read(() => registerBlob(upload_id, sha256, size));
      return "stored";
    },
    async open(sha256) {
      if (!isSha256(sha256)) return null;
      const [blob] = await engine.read(() => readFirst(selectBlob, sha256));
      if (blob === undefined) return null;
      const size = Number(blob["size"]);
      return { size, stream: Readable.from(readParts(String(blob["upload_id"]), sha256, size)) };
    },
  };

  /** Returns the hash of the content, or null as soon as it cannot match what was announced. */
  async function storeParts(
    upload_id: string,
    content: AsyncIterable<Uint8Array>,
    size: number,
    signal: AbortSignal,
  ): Promise<string | null> {
    const hash = createHash("sha256");
    let [part, written] = [0, 0];
    let buffered: Uint8Array[] = [];
    let bufferedBytes = 0;
    for await (const bytes of content) {
      signal.throwIfAborted();
      written += bytes.length;
      if (written > size) return null;
      hash.update(bytes);
      buffered.push(bytes);
      bufferedBytes += bytes.length;
      if (bufferedBytes >= partSize) await flush();
    }
    signal.throwIfAborted();
    if (bufferedBytes > 0) await flush();
    return written === size ? hash.digest("hex") : null;

    async function flush(): Promise<void> {
      const bytes = Buffer.concat(buffered);
      [buffered, bufferedBytes] = [[], 0];
      await engine.read(() => readFirst(insertPart, upload_id, part, getTimeOverride(), bytes));
      part += 1;
    }
  }

  /** Registers the upload under its hash. If that content is already stored, discards the upload. */
  function* registerBlob(upload_id: string, sha256: string, size: number): Work<void> {
    const [row] = yield first(insertBlob, sha256, size, upload_id, getTimeOverride());
    if (row?.["upload_id"] !== upload_id) yield first(`${deleteParts} returning 1 as gone`, upload_id);
  }

  function* deleteUpload(upload_id: string): Work<void> {
    yield first(`${deleteParts} returning 1 as gone`, upload_id);
  }

  /** Throws rather than ending early, because a short stream would look complete. */
  async function* readParts(upload_id: string, sha256: string, size: number): AsyncGenerator<Uint8Array> {
    for (let [part, read] = [0, 0]; read < size; part += 1) {
      const [row] = await engine.read(() => readFirst(selectPart, upload_id, part));
      if (row === undefined) throw createIncompleteBlobError(engine, sha256, { read, size });
      if (!(row["bytes"] instanceof Uint8Array)) throw new BugError("a part of a file is not bytes");
      read += row["bytes"].length;
      yield row["bytes"];
    }
  }
}

function createIncompleteBlobError(
  { name }: PostgresEngine,
  sha256: string,
  { read, size }: { read: number; size: number },
): HostError {
  return new HostError({
    code: "DROVER-STA-004",
    message: `The database ${name} has only ${read} of the ${size} bytes of the file with SHA-256 ${sha256}.`,
    next: "The file may have been deleted while it was being read. Repeat the request. If the error persists, restore a backup.",
  });
}

function* readFirst(text: string, ...values: SqlValue[]): Work<Row[]> {
  return yield first(text, ...values);
}

/**
 * Uses the write lock like the operations that refer to contents, so it removes nothing they are about to use. `at`
 * replaces the database's clock.
 */
export async function prunePostgresBlobs(engine: PostgresEngine, at: Date | null): Promise<{ blobs: number }> {
  await pruneUploads(engine);
  const [row] = await engine.read(() => readFirst(selectNow, at?.getTime() ?? null));
  const cutoff = [Number(row?.["now"]) - minAgeMs];
  const removed = await pruneInPages(engine, unusedBlobs, cutoff, function* (rows) {
    for (const { upload_id = null } of rows) yield write(deleteParts, upload_id);
  });
  await pruneInPages(engine, orphanedParts, cutoff);
  return { blobs: removed };
}
