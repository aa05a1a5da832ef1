import type { Engine } from "./engine.ts";
import { slotSeconds } from "./moves/count-ends.ts";
import { first, type Work, write } from "./query.ts";

/** How far back statistics reach. */
const keptSeconds = 91 * 86_400;

const selectOld = `select slot from run_counts where slot < ? order by slot limit 1`;
const deleteOld = `delete from run_counts where slot < ?`;

/** Removes counts that are too old for any statistics. */
export async function pruneCounts(engine: Engine, now: Date): Promise<void> {
  const before = Math.floor((now.getTime() / 1000 - keptSeconds) / slotSeconds);
  if (await engine.read(() => hasOld(before))) await engine.write(() => remove(before));
}

function* hasOld(before: number): Work<boolean> {
  return (yield first(selectOld, before)).length > 0;
}

function* remove(before: number): Work<void> {
  yield write(deleteOld, before);
}
