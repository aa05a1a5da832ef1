import type { RunEnd } from "../../model/store.ts";
import { type Work, write } from "../query.ts";
import { toColumn } from "../text.ts";

/** Length of a bucket in run_counts, where the column `slot` numbers the buckets. */
export const bucketSeconds = 900;

const addToBucket = `
  insert into run_counts (slot, created_by, status, reason, runs) values (?, ?, ?, ?, ?)
  on conflict (slot, created_by, status, reason) do update set runs = run_counts.runs + excluded.runs`;

/** Adds ended runs to run_counts, with one statement for each distinct creator, status and reason. */
export function* countEnds(ended: readonly RunEnd[], now: Date): Work<void> {
  const groups = new Map<string, { end: RunEnd; runs: number }>();
  for (const end of ended) {
    const key = JSON.stringify([end.created_by, end.status, end.reason]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { end, runs: 1 });
    else group.runs += 1;
  }
  const bucket = Math.floor(now.getTime() / 1000 / bucketSeconds);
  for (const { end, runs } of groups.values())
    yield write(addToBucket, bucket, toColumn(end.created_by), end.status, end.reason ?? "", runs);
}
