import type { HeadCheck } from "../audit/expected-head.ts";
import { verifyChain, verifyingMac, type Verified } from "../audit/verify.ts";
import { walkStatements } from "../postgres/walk-statements.ts";
import type { StillRecord } from "./sides.ts";

/** The chain of a copy in PostgreSQL that is not committed yet, so that what does not verify is not kept. */
export function verifyCopy(copy: StillRecord, secret: Uint8Array, checks: readonly HeadCheck[]): Promise<Verified> {
  return verifyChain({ snapshot: (work) => copy.carryOut(work()) }, walkStatements, verifyingMac(secret), checks);
}
