import type { NewId } from "../model/ids.ts";
import { newRun } from "../model/new-run.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { Store } from "../model/store.ts";
import type { PendingFollowUp } from "../model/hook-ops.ts";
import type { SubmitFault } from "../submit/submit-fault.ts";

export interface ChainDeps {
  store: Pick<Store, "apply" | "read">;
  submit(
    request: RunRequest,
    who: { subject: string; role: "user" },
  ): Promise<{ ok: true } | { ok: false; fault: SubmitFault }>;
  now: () => Date;
  newId: NewId;
  onError: (error: unknown) => void;
}

const batchSize = 50;

/**
 * Submits the runs that follow finished runs. Several coordinators may try at once: each run is stored in the same
 * transaction as the note that it was submitted. A refused run is stored as a failed child run.
 */
export async function submitFollowUps(deps: ChainDeps, signal: AbortSignal): Promise<void> {
  for (;;) {
    const followUps = await deps.store.read.pending_chains(batchSize);
    let submittedCount = 0;
    for (const followUp of followUps) {
      if (signal.aborted) return;
      submittedCount += await submitFollowUp(followUp, deps).then(
        () => 1,
        (error: unknown) => {
          deps.onError(error);
          return 0;
        },
      );
    }
    // Follow-up runs that could not be submitted are retried in the next round.
    if (followUps.length < batchSize || submittedCount === 0) return;
  }
}

async function submitFollowUp(followUp: PendingFollowUp, deps: ChainDeps): Promise<void> {
  const { parent_run_id, agent_name, parameters, prompt, project_dir, created_by } = followUp;
  if (followUp.fault !== null) return recordRefusal(followUp, followUp.fault, deps);
  const submitted = await deps.submit(
    {
      agent_name,
      parameters,
      ...(prompt === null ? {} : { prompt }),
      ...(project_dir === null ? {} : { project_dir }),
      parent_run_id,
      mode: "start",
      priority: 0,
      trigger_type: "agent",
      settles: { chain_of: parent_run_id },
    },
    { subject: created_by, role: "user" },
  );
  if (submitted.ok || submitted.fault.code === "DROVER-HOK-003") return;
  const { message, faults } = submitted.fault;
  await recordRefusal(
    followUp,
    [message, ...faults.map((fault) => `${fault.path}: ${fault.message}.`)].join(" "),
    deps,
  );
}

async function recordRefusal(
  followUp: PendingFollowUp,
  reason: string,
  { store, now, newId }: ChainDeps,
): Promise<void> {
  const { parent_run_id, agent_name, parameters, prompt, created_by } = followUp;
  const run = newRun({
    run_id: newId(),
    agent_name,
    created_by,
    created_at: now().toISOString(),
    parameters,
    prompt,
    parent_run_id,
    trigger_type: "agent",
  });
  await store.apply([{ op: "refuse_chain", parent_run_id, run, why: `The run from on_finish was refused: ${reason}` }]);
}
