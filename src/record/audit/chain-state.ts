import type { AuditState } from "../../model/audit.ts";
import { first, type Work } from "../query.ts";
import { readChainEnd } from "./chain.ts";
import { formatHead } from "./head.ts";

const lastSeal = `select at from audit_batches order by batch_no desc limit 1`;
const lastPruned = `select last_no from audit_anchors order by batch_no desc limit 1`;

/** The state of the audit chain from its last batch alone, without reading its rows. */
export function* readChainState(): Work<Pick<AuditState, "rows" | "head" | "sealed_at">> {
  const { last_no, mac } = yield* readChainEnd();
  const [batch] = yield first(lastSeal);
  const [pruned] = yield first(lastPruned);
  return {
    rows: last_no - Number(pruned?.["last_no"] ?? 0),
    head: formatHead({ count: last_no, mac: Buffer.from(mac).toString("hex") }),
    sealed_at: batch === undefined ? null : String(batch["at"]),
  };
}
