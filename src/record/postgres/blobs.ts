import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { BugError } from "../../model/errors.ts";
import { type Blobs, isSha256 } from "../../model/file.ts";
import { forgetUploads } from "../blobs/forget-uploads.ts";
import { all, first, type Row, type SqlValue, type Work, write } from "../query.ts";
import type { PostgresEngine } from "./engine.ts";

/** Held in memory by whoever writes or reads one. */
export const partSize = 256 * 1024;
/** Contents are stored before anything refers to them: whatever is this young may yet be about to get a name. */
const settledMs = 60 * 60 * 1000;
const atOnce = 500;

const insertPart = `
  insert into blob_parts (upload_id, part, stored_at, bytes) values (?, ?, ?, ?) on conflict do nothing returning part`;
const insertBlob = `
  insert into blobs (sha256, size, upload_id, stored_at) values (?, ?, ?, ?)
  on conflict (sha256) do update set stored_at = excluded.stored_at returning upload_id`;
const deleteParts = `delete from blob_parts where upload_id = ?`;
const selectBlob = `select size, upload_id from blobs where sha256 = ?`;
const selectPart = `select bytes from blob_parts where upload_id = ? and part = ?`;
const deleteUnused = `
  delete from blobs where sha256 in (
    select sha256 from blobs where stored_at < ?
      and not exists (select 1 from files where files.sha256 = blobs.sha256)
      and not exists (select 1 from uploads where uploads.sha256 = blobs.sha256) limit ?) returning upload_id`;
const deleteLeft = `
  delete from blob_parts where stored_at < ? and not exists (select 1 from blobs where blobs.upload_id = blob_parts.upload_id)`;

/** Contents in the database itself: any coordinator can give what another has taken. */
export function postgresBlobs(engine: PostgresEngine, now: () => Date): Blobs {
  return {
    async put(content, { sha256, size }, signal) {
      if (!isSha256(sha256)) return "mismatch";
      const upload_id = randomBytes(16).toString("hex");
      const stored = await storeParts(upload_id, content, size, signal);
      if (stored !== sha256) {
        await engine.read(() => forget(upload_id));
        return "mismatch";
      }
      await engine.read(() => give(upload_id, sha256, size));
      return "stored";
    },
    async open(sha256) {
      if (!isSha256(sha256)) return null;
      const [blob] = await engine.read(() => ask(selectBlob, sha256));
      if (blob === undefined) return null;
      return { size: Number(blob["size"]), stream: Readable.from(parts(String(blob["upload_id"]))) };
    },
  };

  /** The hash of what came; null as soon as it cannot be what was announced. */
  async function storeParts(
    upload_id: string,
    content: AsyncIterable<Uint8Array>,
    size: number,
    signal: AbortSignal,
  ): Promise<string | null> {
    const hash = createHash("sha256");
    let [part, written] = [0, 0];
    let held: Uint8Array[] = [];
    let holding = 0;
    for await (const bytes of content) {
      signal.throwIfAborted();
      written += bytes.length;
      if (written > size) return null;
      hash.update(bytes);
      held.push(bytes);
      holding += bytes.length;
      if (holding >= partSize) await flush();
    }
    signal.throwIfAborted();
    if (holding > 0) await flush();
    return written === size ? hash.digest("hex") : null;

    async function flush(): Promise<void> {
      const bytes = Buffer.concat(held);
      [held, holding] = [[], 0];
      await engine.read(() => ask(insertPart, upload_id, part, now().getTime(), bytes));
      part += 1;
    }
  }

  /** Under its hash from here on; where it was there already, that one stays. */
  function* give(upload_id: string, sha256: string, size: number): Work<void> {
    const [row] = yield first(insertBlob, sha256, size, upload_id, now().getTime());
    if (row?.["upload_id"] !== upload_id) yield first(`${deleteParts} returning 1 as gone`, upload_id);
  }

  function* forget(upload_id: string): Work<void> {
    yield first(`${deleteParts} returning 1 as gone`, upload_id);
  }

  async function* parts(upload_id: string): AsyncGenerator<Uint8Array> {
    for (let part = 0; ; part += 1) {
      const [row] = await engine.read(() => ask(selectPart, upload_id, part));
      if (row === undefined) return;
      if (!(row["bytes"] instanceof Uint8Array)) throw new BugError("a part of a file is not bytes");
      yield row["bytes"];
    }
  }
}

function* ask(text: string, ...values: SqlValue[]): Work<Row[]> {
  return yield first(text, ...values);
}

/** In turn with every operation that gives contents a name, so that nothing is removed that is about to get one. */
export async function prunePostgresBlobs(engine: PostgresEngine, now: Date): Promise<{ blobs: number }> {
  const before = now.getTime() - settledMs;
  await forgetUploads(engine);
  let blobs = 0;
  for (let gone = atOnce; gone === atOnce; blobs += gone)
    gone = await engine.write(function* (): Work<number> {
      const removed = yield all(deleteUnused, before, atOnce);
      for (const { upload_id = null } of removed) yield write(deleteParts, upload_id);
      return removed.length;
    });
  await engine.write(function* (): Work<void> {
    yield write(deleteLeft, before);
  });
  return { blobs };
}
