import { pruneAudit } from "./record/audit/prune.ts";
import type { RecordStore } from "./record/record-store.ts";
import { pruneDispatch } from "./record/retention-dispatch.ts";
import { pruneTokens } from "./record/retention-tokens.ts";
import { stoppable } from "./record/stoppable.ts";
import { clockOf } from "./record/store-clock.ts";

/** What is older is removed; null: kept. */
export interface RetentionDays {
  /** Of runs that have finished. */
  runRetentionDays?: number | null;
  /** Of rows of the audit trail. */
  auditRetentionDays?: number | null;
  /** Of tokens that have ended. */
  tokenRetentionDays?: number | null;
}

/** What is left of it when the coordinator ends, the next start removes. */
export async function pruneUntil(signal: AbortSignal, options: RetentionDays, store: RecordStore): Promise<void> {
  try {
    await prune(options, stoppable(store, signal));
  } catch (fault) {
    if (!signal.aborted || fault !== signal.reason) throw fault;
  }
}

async function prune(
  { runRetentionDays, auditRetentionDays, tokenRetentionDays }: RetentionDays,
  store: RecordStore,
): Promise<void> {
  // by this process's own clock, one that is far ahead would remove what everybody else keeps
  const now = await clockOf(store);
  const daysAgo = (days: number): Date => new Date(now.getTime() - days * 86_400_000);
  if (runRetentionDays) await pruneDispatch(store, daysAgo(runRetentionDays));
  if (auditRetentionDays) await pruneAudit(store, daysAgo(auditRetentionDays));
  if (tokenRetentionDays) await pruneTokens(store, daysAgo(tokenRetentionDays));
  await store.pruneBlobs(store.now());
}
