import type { AuditEntry } from "./audit/chain.ts";
import type { Statement } from "./sqlite/driver.ts";

/** What an operation gets to work with. Everything in it is durable at once, or not at all. */
export interface Transaction {
  sql(text: string): Statement;
  /** To be appended to the chain when all operations are done. */
  audit: AuditEntry[];
}
