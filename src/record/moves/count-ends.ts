import type { RunEnd } from "../../model/store.ts";
import { type Work, write } from "../query.ts";
import { toColumn } from "../text.ts";

/** Length of a slot in run_counts. */
export const slotSeconds = 900;

const add = `
  insert into run_counts (slot, created_by, status, reason, runs) values (?, ?, ?, ?, ?)
  on conflict (slot, created_by, status, reason) do update set runs = run_counts.runs + excluded.runs`;

/** Counts equal ends of a transaction with one statement, so that many ends cost little more than one. */
export function* countEnds(ended: readonly RunEnd[], now: Date): Work<void> {
  const alike = new Map<string, { end: RunEnd; runs: number }>();
  for (const end of ended) {
    const key = JSON.stringify([end.created_by, end.status, end.reason]);
    const counted = alike.get(key);
    if (counted === undefined) alike.set(key, { end, runs: 1 });
    else counted.runs += 1;
  }
  const slot = Math.floor(now.getTime() / 1000 / slotSeconds);
  for (const { end, runs } of alike.values())
    yield write(add, slot, toColumn(end.created_by), end.status, end.reason ?? "", runs);
}
