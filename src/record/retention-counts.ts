import type { Engine } from "./engine.ts";
import { bucketSeconds } from "./moves/count-ends.ts";
import { first, type Work, write } from "./query.ts";

/** How far back statistics reach. */
const retentionSeconds = 91 * 86_400;

const selectOld = `select slot from run_counts where slot < ? order by slot limit 1`;
const deleteOld = `delete from run_counts where slot < ?`;

/** Removes counts that are too old for any statistics. */
export async function pruneCounts(engine: Engine, now: Date): Promise<void> {
  const cutoff = Math.floor((now.getTime() / 1000 - retentionSeconds) / bucketSeconds);
  if (await engine.read(() => hasOldCounts(cutoff))) await engine.write(() => deleteCounts(cutoff));
}

function* hasOldCounts(cutoff: number): Work<boolean> {
  return (yield first(selectOld, cutoff)).length > 0;
}

function* deleteCounts(cutoff: number): Work<void> {
  yield write(deleteOld, cutoff);
}
