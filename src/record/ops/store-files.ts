import type { NumberedEvent } from "../../model/event.ts";
import { isFilePath, isSha256 } from "../../model/file.ts";
import { write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { StoredRun } from "../moves/stored-run.ts";

const insertFile = `
  insert into files (run_no, attempt, path, size, sha256, media_type)
  select run_no, attempt, ?, size, sha256, ? from uploads where run_no = ? and attempt = ? and sha256 = ? and size = ?
  on conflict (run_no, attempt, path)
  do update set size = excluded.size, sha256 = excluded.sha256, media_type = excluded.media_type`;

/** `file` events become files of the run where this attempt has brought just these bytes; else they are lines of the log. */
export function* storeFiles(run: StoredRun, events: readonly NumberedEvent[]): Work<void> {
  for (const { event } of events) {
    if (event.type !== "file" || !isSha256(event.sha256) || !isFilePath(event.path)) continue;
    // PostgreSQL would refuse the whole transaction for a size that is none.
    if (!Number.isSafeInteger(event.size)) continue;
    const type = mediaType.test(event.media_type) ? event.media_type : "application/octet-stream";
    yield write(insertFile, toColumn(event.path), type, run.run_no, run.attempt, event.sha256, event.size);
  }
}

const mediaType = /^[a-z0-9][\w.+-]{0,60}\/[a-z0-9][\w.+-]{0,60}$/i;
