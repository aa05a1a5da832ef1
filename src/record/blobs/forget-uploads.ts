import type { Engine } from "../engine.ts";
import { all, type Work } from "../query.ts";

const atOnce = 1000;

const deleteUploads = `
  delete from uploads where (run_no, attempt, sha256) in (
    select uploads.run_no, uploads.attempt, sha256 from uploads left join runs using (run_no)
    where runs.run_no is null or runs.status in ('completed', 'failed', 'cancelled') limit ?)
  returning 1 as gone`;

/** Of runs that have ended or are gone: no event of theirs will name these contents any more. */
export async function forgetUploads(engine: Engine): Promise<void> {
  for (;;) {
    if ((await engine.write(deleteSome)) < atOnce) return;
  }
}

function* deleteSome(): Work<number> {
  return (yield all(deleteUploads, atOnce)).length;
}
