import { first, write, type Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import { releaseDirectory } from "../moves/release.ts";
import { statusIn } from "../moves/statuses.ts";
import type { QueueHead } from "./pick-runs.ts";
import type { StoredRunner } from "./runner-row.ts";

const isWorking = `directory is not null and ${statusIn("assigned")}`;
const selectHolder = `select 1 from runs indexed by runs_in_directory where directory = ? and ${isWorking} limit 1`;
const blockRun = `update runs set blocked_by = 'directory', directory = ? where run_no = ?`;
const setDirectory = `update runs set directory = ? where run_no = ?`;

/**
 * Gives a run that works in place exclusive use of its directory on that host. If another run has the directory, this one
 * is blocked until that run leaves, and false is returned. Other runs skip this check.
 */
export function* enterDirectory(tx: Transaction, runner: StoredRunner, head: QueueHead): Work<boolean> {
  if (head.in_place === null) return true;
  const directory = toDirectoryKey(runner, head);
  const [holder] = yield first(selectHolder, directory);
  const isBusy = holder !== undefined;
  yield write(isBusy ? blockRun : setDirectory, directory, head.run_no);
  // The run was unblocked for a directory on another host but will not use it: unblock the next run that waits for it.
  if (head.directory !== null && head.directory !== directory)
    yield* releaseDirectory(tx, { directory: head.directory, blocked_by: null });
  return !isBusy;
}

/** Identifies a directory on a host. Both parts come from columns and are still in their stored encoding. */
function toDirectoryKey({ row }: StoredRunner, { project_dir }: QueueHead): string {
  return JSON.stringify([row["hostname"], project_dir ?? row["project_dir"]]);
}
