import type { RunEvent } from "../../model/event.ts";
import { createInterruptedEnd } from "../../model/interrupted-end.ts";
import type { RunnerDirectories } from "../workspace/open-directories.ts";
import type { FoundLog } from "../journal/run-logs.ts";
import { recoverNested } from "../nested/recover-nested.ts";
import { sweepSockets } from "../nested/sweep-sockets.ts";
import { toStopOutcome } from "../supervise/stop-outcome.ts";
import type { SuperviseOptions } from "../supervise/supervise-options.ts";
import { emptyPrivateDirectory } from "../workspace/private-directory.ts";

interface SettleOptions {
  supervise: Pick<SuperviseOptions, "redactor" | "owner" | "now"> & {
    directories: Pick<RunnerDirectories, "tmpRoot" | "runsDirectory" | "stateDirectory">;
  };
  killOrphans: (executionIds: string[]) => Promise<unknown>;
  onNotice: (message: string, cause?: unknown) => void;
}

const runnerDied = "The runner died before this command ended. The next runner killed its remaining processes.";

/**
 * Settles the runs whose runner died, which are those whose logs have no outcome. Kills their remaining processes and
 * ends the runs as lost.
 */
export async function settleInterrupted(
  logs: readonly FoundLog[],
  { killOrphans, supervise, onNotice }: SettleOptions,
): Promise<void> {
  const { directories, redactor, owner, now } = supervise;
  const unfinished = logs.filter(({ journal }) => journal.outcome === null);
  await killOrphans(unfinished.flatMap(({ executions }) => openExecutions(executions)));
  // Only this runner uses the directory, and it has no runs yet.
  await emptyPrivateDirectory(directories.stateDirectory, directories.tmpRoot, onNotice);
  if (unfinished.length > 0)
    await sweepSockets(directories.runsDirectory).catch((error: unknown) =>
      onNotice("old sockets could not be removed", error),
    );
  for (const { journal, executions } of unfinished) {
    const endedAt = now().toISOString();
    const record = (event: RunEvent): void => void journal.append(redactor.value(event));
    const { run_id, attempt } = journal;
    const nested = await recoverNested(
      { runsDirectory: directories.runsDirectory, run_id, attempt, owner, now, record, recorded: executions },
      runnerDied,
    );
    for (const id of openExecutions(executions))
      if (!nested.has(id))
        journal.append({ type: "execution_ended", execution: createInterruptedEnd(id, endedAt, runnerDied) });
    const lost = toStopOutcome("lease_lost");
    journal.finish(lost.status === "failed" ? { ...lost, message: "The runner died during this run." } : lost);
  }
}

function openExecutions(executions: ReadonlyMap<string, "open" | "ended">): string[] {
  return [...executions].flatMap(([id, state]) => (state === "open" ? [id] : []));
}
