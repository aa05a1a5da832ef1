import { recoverNested } from "../execute/nested/recover-nested.ts";
import { sweepSockets } from "../execute/nested/sweep-sockets.ts";
import type { RunEvent } from "../model/event.ts";
import { createInterruptedEnd } from "../model/interrupted-end.ts";
import { runsDirectory } from "../model/state-layout.ts";
import type { Execution } from "../model/store.ts";
import { killOrphans } from "../process/orphans.ts";
import { findInterruptedExecutions } from "../record/audit/interrupted-executions.ts";
import type { SqliteStore } from "../record/open.ts";
import { createRedactor } from "../redact/redactor.ts";

/**
 * Cleans up after a Drover process that was killed: kills the remaining processes of its commands and records the
 * commands as interrupted, so that no run keeps the status "running" forever.
 */
export async function sweepInterrupted(store: SqliteStore, stateDirectory: string): Promise<void> {
  const interrupted = await findInterruptedExecs(store);
  if (interrupted.length === 0) return;
  await killOrphans(interrupted.map(({ start }) => start.execution_id));
  for (const execution of interrupted) await finishInterrupted(store, execution, runsDirectory(stateDirectory));
  await sweepSockets(runsDirectory(stateDirectory));
}

/** Finds interrupted `exec` runs, whose only execution has the id of the run. A coordinator finishes all other runs. */
async function findInterruptedExecs(store: SqliteStore): Promise<Execution[]> {
  return (await findInterruptedExecutions(store)).filter(({ run_id, start }) => run_id === start.execution_id);
}

async function finishInterrupted(
  store: SqliteStore,
  { run_id, attempt, start }: Execution,
  directory: string,
): Promise<void> {
  const at = new Date().toISOString();
  const [appendResult] = await store.apply([{ op: "append_events", run_id, attempt, events: [] }]);
  const message = `The Drover process that ran this command (${start.owner.pid} on ${start.owner.host}) died before the command ended.`;
  const events: RunEvent[] = [];
  const redactor = createRedactor({ variables: process.env });
  await recoverNested(
    {
      runsDirectory: directory,
      run_id,
      attempt,
      owner: start.owner,
      now: () => new Date(),
      record: (event) => void events.push(redactor.value(event)),
      recorded: await readRecordedExecutions(store, run_id),
    },
    message,
  );
  events.push({ type: "execution_ended", execution: createInterruptedEnd(start.execution_id, at, message) });
  // A conflict means that another process has already finished the run, with the same result.
  await store.apply([
    {
      op: "finish_run",
      run_id,
      attempt,
      at,
      events: events.map((event, index) => ({ n: appendResult.last_n + 1 + index, at, event })),
      result: {
        type: "result",
        status: "failed",
        reason: "runner_lost",
        error: message,
        exit_code: null,
        result_text: null,
        result_data: null,
      },
      isolation: null,
    },
  ]);
}

async function readRecordedExecutions(store: SqliteStore, run_id: string): Promise<Map<string, "open" | "ended">> {
  const states = new Map<string, "open" | "ended">();
  let lastId: string | undefined;
  for (;;) {
    const page = await store.read.executions(
      { run_id },
      { limit: 1000, ...(lastId === undefined ? {} : { before: lastId }) },
    );
    for (const { start, end } of page) states.set(start.execution_id, end === null ? "open" : "ended");
    lastId = page.at(-1)?.start.execution_id;
    if (lastId === undefined || page.length < 1000) return states;
  }
}
