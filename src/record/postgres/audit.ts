import { createHeadCheck } from "../audit/head-checks.ts";
import { exportFrom, type ExportRange } from "../audit/export.ts";
import { verifyChain, createVerifyingMac, type VerifyResult } from "../audit/verify.ts";
import { openPostgresEngine, type PostgresEngine } from "./engine.ts";
import { requireRecord } from "./require-record.ts";
import { walkStatements } from "./walk-statements.ts";

const outageWaitMs = 5000;

/**
 * `head` is what an earlier verify printed. No head is stored beside the database, so without it a truncated chain goes
 * unnoticed.
 */
export function verifyPostgres(
  { url, secret }: { url: string; secret: Uint8Array },
  head: string | undefined,
): Promise<VerifyResult> {
  const checks = head === undefined ? [] : [createHeadCheck(head)];
  return withEngine(url, (engine) => verifyChain(engine, walkStatements, createVerifyingMac(secret), checks));
}

export function exportPostgres(
  url: string,
  range: ExportRange,
  write: (line: string) => void | Promise<void>,
): Promise<{ executions: number }> {
  return withEngine(url, (engine) => exportFrom(engine, range, write));
}

async function withEngine<T>(url: string, work: (engine: PostgresEngine) => Promise<T>): Promise<T> {
  await requireRecord(url);
  const engine = openPostgresEngine(url, outageWaitMs);
  try {
    return await work(engine);
  } finally {
    engine.close();
  }
}
