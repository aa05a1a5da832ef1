import type { HeadCheck } from "../audit/head-checks.ts";
import { verifyChain, createVerifyingMac, type VerifyResult } from "../audit/verify.ts";
import { walkStatements } from "../postgres/walk-statements.ts";
import type { ReadableRecord } from "./record-copy.ts";

/** Verifies the chain of an uncommitted copy in PostgreSQL, so that a broken copy is never committed. */
export function verifyCopy(
  target: ReadableRecord,
  secret: Uint8Array,
  checks: readonly HeadCheck[],
): Promise<VerifyResult> {
  return verifyChain(
    { snapshot: (work) => target.runWork(work()) },
    walkStatements,
    createVerifyingMac(secret),
    checks,
  );
}
