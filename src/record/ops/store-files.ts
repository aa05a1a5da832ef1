import type { NumberedEvent } from "../../model/event.ts";
import { isFilePath, isSha256 } from "../../model/file.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import type { StoredRun } from "./run-state.ts";

const insertFile = `
  insert or replace into files (run_no, attempt, path, size, sha256, media_type)
  select run_no, attempt, ?, size, sha256, ? from uploads where run_no = ? and attempt = ? and sha256 = ? and size = ?`;

/** `file` events become files of the run where this attempt has brought just these bytes; else they are lines of the log. */
export function storeFiles(tx: Transaction, run: StoredRun, events: readonly NumberedEvent[]): void {
  for (const { event } of events) {
    if (event.type !== "file" || !isSha256(event.sha256) || !isFilePath(event.path)) continue;
    const type = mediaType.test(event.media_type) ? event.media_type : "application/octet-stream";
    tx.sql(insertFile).run(toColumn(event.path), type, run.run_no, run.attempt, event.sha256, event.size);
  }
}

const mediaType = /^[a-z0-9][\w.+-]{0,60}\/[a-z0-9][\w.+-]{0,60}$/i;
