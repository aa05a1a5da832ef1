import { statSync, utimesSync, writeFileSync } from "node:fs";
import { recordDirectory, retentionStampFile } from "../model/state-layout.ts";
import type { Local } from "../local.ts";
import type { SqliteStore } from "../record/open.ts";

const day = 86_400_000;

/** At most once a day, and after everything else: what is older than the operator keeps is removed. */
export async function retainIfDue(store: SqliteStore, { places, config }: Local, now: Date): Promise<void> {
  const stamp = retentionStampFile(recordDirectory(places.stateDirectory));
  const last = statSync(stamp, { throwIfNoEntry: false });
  if (last && now.getTime() - last.mtimeMs < day) return;
  // before the work, so that of several only one does it
  if (last) utimesSync(stamp, now, now);
  else writeFileSync(stamp, "");
  const { retain, retentionDays } = await import("../record/retain.ts");
  await retain(store, retentionDays(config));
}
