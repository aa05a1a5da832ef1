import type { Engine } from "../engine.ts";
import { statusIn } from "../moves/statuses.ts";
import { pruneInPages } from "../prune-in-pages.ts";

/** Of runs that have ended or are gone: no event of theirs will name these contents any more. */
export async function forgetUploads(engine: Engine): Promise<void> {
  await pruneInPages(engine, {
    table: "uploads",
    key: "run_no",
    from: 0,
    condition: `not exists (
      select 1 from runs where runs.run_no = uploads.run_no and ${statusIn("open", "runs.status")})`,
  });
}
