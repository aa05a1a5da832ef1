import { statSync, utimesSync, writeFileSync } from "node:fs";
import { recordDirectory, retentionStampFile } from "../model/state-layout.ts";
import type { Project } from "../local.ts";
import type { SqliteStore } from "../record/open.ts";

const dayMs = 86_400_000;

/** Deletes records that are older than the configured retention, at most once a day. */
export async function retainIfDue(store: SqliteStore, { locations, config }: Project, now: Date): Promise<void> {
  const stamp = retentionStampFile(recordDirectory(locations.stateDirectory));
  const lastRun = statSync(stamp, { throwIfNoEntry: false });
  if (lastRun && now.getTime() - lastRun.mtimeMs < dayMs) return;
  // Touch the stamp first, so that only one of several concurrent commands does the work.
  if (lastRun) utimesSync(stamp, now, now);
  else writeFileSync(stamp, "");
  const { applyRetention, toRetentionDays } = await import("../record/apply-retention.ts");
  await applyRetention(store, toRetentionDays(config));
}
