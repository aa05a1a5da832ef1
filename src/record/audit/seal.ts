import type { ComputeMac } from "../../model/hmac.ts";

/**
 * Defines which bytes a seal covers, so that anyone with the key can verify it. A field is encoded as its length in bytes,
 * a colon and its UTF-8 bytes; null is encoded as "-". A row's mac covers its columns in order. A batch's mac covers the
 * previous batch's mac, its own columns and the macs of its rows. An anchor's seal covers its columns, which include the
 * mac of the last removed batch.
 */
export interface AuditRow {
  no: number;
  batch_no: number;
  kind: AuditKind;
  execution_id: string | null;
  run_id: string | null;
  attempt: number | null;
  at: string;
  body: string;
}

/**
 * `fenced`: a write of a runner was refused because the run was no longer its own.
 * `decision`: how a question that a run asked was decided, and by whom.
 * `head_mismatch`: the chain did not match its head when it was continued.
 */
export type AuditKind = "start" | "end" | "prune" | "fenced" | "head_mismatch" | "decision";

export interface AuditBatch {
  batch_no: number;
  first_no: number;
  count: number;
  at: string;
}

export interface AuditAnchor {
  batch_no: number;
  last_no: number;
  pruned_before: string;
  at: string;
  mac: Uint8Array;
}

export const genesis = new Uint8Array(32);

export function sealRow(computeMac: ComputeMac, row: AuditRow): Uint8Array {
  return computeMac(
    Buffer.from(
      encodeFields("row", row.no, row.batch_no, row.kind, row.execution_id, row.run_id, row.attempt, row.at, row.body),
    ),
  );
}

export function sealBatch(
  computeMac: ComputeMac,
  previousMac: Uint8Array,
  batch: AuditBatch,
  rowMacs: readonly Uint8Array[],
): Uint8Array {
  const columns = Buffer.from(encodeFields("batch", batch.batch_no, batch.first_no, batch.count, batch.at));
  return computeMac(Buffer.concat([previousMac, columns, ...rowMacs]));
}

export function sealAnchor(computeMac: ComputeMac, anchor: AuditAnchor): Uint8Array {
  const columns = Buffer.from(encodeFields("anchor", anchor.batch_no, anchor.last_no, anchor.pruned_before, anchor.at));
  return computeMac(Buffer.concat([columns, anchor.mac]));
}

function encodeFields(...values: (string | number | null)[]): string {
  let text = "";
  for (const value of values) text += value === null ? "-" : `${Buffer.byteLength(String(value))}:${value}`;
  return text;
}
