import type { Config } from "../model/config.ts";
import { pruneAudit } from "./audit/prune.ts";
import type { RecordStore } from "./record-store.ts";
import { pruneCounts } from "./retention-counts.ts";
import { pruneDispatch } from "./retention-dispatch.ts";
import { pruneTokens } from "./retention-tokens.ts";
import { pruneEvents, pruneFiles } from "./retention.ts";
import { createAbortableStore } from "./abortable.ts";
import { readStoreClock } from "./store-clock.ts";

/** How many days to retain each kind of data after its run has ended. Data without a number is never removed. */
export type RetentionDays = Partial<Config["retention"] & { audit_days: number; tokens_days: number }>;

export function toRetentionDays({ retention, execution: { audit } }: Config): RetentionDays {
  return { ...retention, audit_days: audit.retention_days, tokens_days: audit.retention_days };
}

/** Removes everything past its retention. If aborted, the next call removes the rest. */
export async function applyRetention(store: RecordStore, days: RetentionDays, signal?: AbortSignal): Promise<void> {
  try {
    await prune(signal === undefined ? store : createAbortableStore(store, signal), days);
  } catch (error) {
    if (signal?.aborted !== true || error !== signal.reason) throw error;
  }
}

async function prune(store: RecordStore, days: RetentionDays): Promise<void> {
  // A process whose own clock is far ahead would remove data too early.
  const now = await readStoreClock(store);
  const cutoff = (dayCount: number | undefined): Date =>
    new Date(dayCount === undefined ? 0 : now.getTime() - dayCount * 86_400_000);
  if (days.runs_days !== undefined || days.sessions_days !== undefined)
    await pruneDispatch(store, cutoff(days.runs_days), cutoff(days.sessions_days));
  if (days.events_days !== undefined) await pruneEvents(store, cutoff(days.events_days));
  if (days.files_days !== undefined) await pruneFiles(store, cutoff(days.files_days));
  if (days.audit_days !== undefined) await pruneAudit(store, cutoff(days.audit_days));
  if (days.tokens_days !== undefined) await pruneTokens(store, cutoff(days.tokens_days));
  await pruneCounts(store.engine, now);
  await store.pruneBlobs(store.now());
}
