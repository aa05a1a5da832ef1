import { first, type Work } from "../query.ts";
import type { AuditEntry, ChainEnd } from "./chain.ts";
import type { ChainHead } from "./head.ts";

/** Body of a `head_mismatch` row: the head and the end of the chain before the row's batch was written. */
interface MismatchBody {
  head: ChainHead | "missing";
  chain: ChainHead;
  /** Number of the original row, if retention has copied it. */
  row_no?: number;
}

const selectBatchOfRow = `
  select first_no + count - 1 as last_no, audit_batches.mac from audit_rows join audit_batches using (batch_no)
  where no = ?`;
const selectAnchor = `select last_no, mac from audit_anchors order by batch_no desc limit 1`;
const selectFirstMismatch = `
  select no, at, body from audit_rows where no <= ? and kind = 'head_mismatch' order by no limit 1`;

/**
 * Reports whether the chain contradicts this head. A chain that is ahead does not: a crash may come between the commit and
 * the update of the file.
 */
export function* contradictsHead(head: ChainHead, end: ChainEnd): Work<boolean> {
  if (head.count >= end.last_no) return head.count > end.last_no || head.mac !== toHex(end.mac);
  if (head.count === 0) return false;
  const [anchor] = yield first(selectAnchor);
  // Pruned rows can no longer be compared; only the last pruned batch left its mac.
  if (anchor !== undefined && head.count < Number(anchor["last_no"])) return false;
  const position = anchor?.["last_no"] === head.count ? anchor : (yield first(selectBatchOfRow, head.count))[0];
  return (
    position?.["last_no"] !== head.count ||
    !(position["mac"] instanceof Uint8Array) ||
    toHex(position["mac"]) !== head.mac
  );
}

export function createMismatchEntry(head: ChainHead | "missing", end: ChainEnd, at: string): AuditEntry {
  return toEntry({ head, chain: { count: end.last_no, mac: toHex(end.mac) } }, at);
}

/** Copies the first mismatch among rows that retention is about to remove, so that it stays visible. */
export function* findMismatchToKeep(last_no: number): Work<AuditEntry | null> {
  const [row] = yield first(selectFirstMismatch, last_no);
  if (row === undefined) return null;
  // toEntry wrote this value.
  const body = JSON.parse(String(row["body"])) as MismatchBody;
  return toEntry({ ...body, row_no: body.row_no ?? Number(row["no"]) }, String(row["at"]));
}

/** Describes a mismatch for people. The row's seal was verified before, so its body can be trusted. */
export function describeMismatch(no: number, text: string): string {
  const { head, chain, row_no = no } = JSON.parse(text) as MismatchBody;
  const when = `when row ${row_no} was written`;
  if (head === "missing") return `audit.head was missing ${when}: rows may have been cut off before it`;
  if (head.count > chain.count)
    return `the record was shorter than its head ${when}: the head recorded ${head.count} rows, but there were only ${chain.count}`;
  return `the record did not match its head ${when}: rows up to ${head.count} had been rewritten`;
}

/** The warning that the next process prints when it writes to the record. */
export function formatMismatchWarning(directory: string, head: ChainHead | "missing", rows: number): string {
  const problem =
    head === "missing"
      ? "its audit.head is missing"
      : head.count > rows
        ? `its head recorded ${head.count} rows, but there are only ${rows}`
        : `its rows up to ${head.count} were rewritten`;
  return `The record in ${directory} does not match its audit head: ${problem}. Run drover audit verify for details. [DROVER-AUD-002]`;
}

function toEntry(body: MismatchBody, at: string): AuditEntry {
  return { kind: "head_mismatch", execution_id: null, run_id: null, attempt: null, at, body: JSON.stringify(body) };
}

function toHex(mac: Uint8Array): string {
  return Buffer.from(mac).toString("hex");
}
