import type { Engine } from "../engine.ts";
import { statusIn } from "../moves/statuses.ts";
import { pruneInPages } from "../prune-in-pages.ts";

/** Removes uploads of runs that have ended or been deleted: no event will refer to them any more. */
export async function pruneUploads(engine: Engine): Promise<void> {
  await pruneInPages(engine, {
    table: "uploads",
    key: "run_no",
    from: 0,
    condition: `not exists (
      select 1 from runs where runs.run_no = uploads.run_no and ${statusIn("open", "runs.status")})`,
  });
}
