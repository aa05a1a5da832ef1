import { all, first, type Work } from "../query.ts";
import type { Mac } from "../../model/hmac.ts";
import { sealAnchor, sealRow, type AuditAnchor, type AuditRow } from "./seal.ts";

/** One may have been changed; not all of them, without that being the greater trouble. */
const lastRows = `
  select no, batch_no, kind, execution_id, run_id, attempt, at, body, mac from audit_rows order by no desc limit 10`;
const lastAnchor = `
  select batch_no, last_no, pruned_before, at, mac, seal from audit_anchors order by batch_no desc limit 1`;

/** A quick look at the end of the chain: is this its key? Where nothing was sealed yet, any key is. */
export function* isSealedWith(mac: Mac): Work<boolean> {
  const rows = yield all(lastRows);
  // Both statements select exactly these columns.
  if (rows.length > 0) return rows.some((row) => equal(sealRow(mac, row as unknown as AuditRow), row["mac"]));
  const [anchor] = yield first(lastAnchor);
  return anchor === undefined || equal(sealAnchor(mac, anchor as unknown as AuditAnchor), anchor["seal"]);
}

function equal(seal: Uint8Array, stored: unknown): boolean {
  return stored instanceof Uint8Array && Buffer.compare(seal, stored) === 0;
}
