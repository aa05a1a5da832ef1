import { type AddUpload, type FileResult, isSha256 } from "../../model/file.ts";
import { hasEnded } from "../../model/states.ts";
import { first, write, type Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import { auditRefused, isFenced } from "./fence.ts";
import { findWrittenRun, type StoredRun } from "../moves/stored-run.ts";

const selectUpload = `select size from uploads where run_no = ? and attempt = ? and sha256 = ?`;
const insertUpload = `
  insert into uploads (run_no, attempt, sha256, size) values (?, ?, ?, ?) on conflict do nothing`;

export function* addUpload(tx: Transaction, op: AddUpload): Work<FileResult> {
  const run = yield* findWrittenRun(op.run_id);
  if (run === null || !isSha256(op.sha256)) return { ok: false, conflict: "not_found" };
  const fenced = isFenced(run, op);
  // A repeated upload: it is already stored.
  if (!fenced && (yield* hasUpload(run, op))) return { ok: true, op: "add_upload" };
  if (fenced || hasEnded(run.status)) {
    auditRefused(tx, run, op);
    return { ok: false, conflict: "fenced" };
  }
  if (op.only_check !== true) yield write(insertUpload, run.run_no, op.attempt, op.sha256, op.size);
  return { ok: true, op: "add_upload" };
}

function* hasUpload(run: StoredRun, { sha256, size }: { sha256: string; size: number }): Work<boolean> {
  const [row] = yield first(selectUpload, run.run_no, run.attempt, sha256);
  return row?.["size"] === size;
}
