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

/**
 * Turns `file` events into files of the run if this attempt has uploaded exactly these bytes. Otherwise the events only
 * stay in the log.
 */
export function* storeFiles(run: StoredRun, events: readonly NumberedEvent[]): Work<void> {
  for (const { event } of events) {
    if (event.type !== "file" || !isSha256(event.sha256) || !isFilePath(event.path)) continue;
    // PostgreSQL would reject the whole transaction for an invalid size.
    if (!Number.isSafeInteger(event.size)) continue;
    const type = mediaTypePattern.test(event.media_type) ? event.media_type : "application/octet-stream";
    yield write(insertFile, toColumn(event.path), type, run.run_no, run.attempt, event.sha256, event.size);
  }
}

const mediaTypePattern = /^[a-z0-9][\w.+-]{0,60}\/[a-z0-9][\w.+-]{0,60}$/i;
