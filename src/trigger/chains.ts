import type { NewId } from "../model/ids.ts";
import { newRun } from "../model/new-run.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { Store } from "../model/store.ts";
import type { PendingChain } from "../model/trigger-ops.ts";
import type { SubmitFault } from "../submit/submit-fault.ts";

export interface ChainDeps {
  store: Pick<Store, "apply" | "read">;
  submit(
    request: RunRequest,
    who: { subject: string; role: "user" },
  ): Promise<{ ok: true } | { ok: false; fault: SubmitFault }>;
  now: () => Date;
  newId: NewId;
  onFault: (fault: unknown) => void;
}

const atOnce = 50;

/**
 * Makes runs of what follows those that ended. Any number of coordinators may try: the run and the mark that it was made are
 * one transaction. One that cannot be made is stored as a child that failed.
 */
export async function submitChains(deps: ChainDeps, signal: AbortSignal): Promise<void> {
  for (;;) {
    const chains = await deps.store.read.pending_chains(atOnce);
    let settled = 0;
    for (const chain of chains) {
      if (signal.aborted) return;
      settled += await submitOne(chain, deps).then(
        () => 1,
        (fault: unknown) => {
          deps.onFault(fault);
          return 0;
        },
      );
    }
    // what could not be settled now is tried with the next turn
    if (chains.length < atOnce || settled === 0) return;
  }
}

async function submitOne(chain: PendingChain, deps: ChainDeps): Promise<void> {
  const { parent_run_id, agent_name, parameters, prompt, project_dir, created_by } = chain;
  if (chain.fault !== null) return refuse(chain, chain.fault, deps);
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
  await refuse(chain, [message, ...faults.map((fault) => `${fault.path}: ${fault.message}.`)].join(" "), deps);
}

async function refuse(chain: PendingChain, why: string, { store, now, newId }: ChainDeps): Promise<void> {
  const { parent_run_id, agent_name, parameters, prompt, created_by } = chain;
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
  await store.apply([{ op: "refuse_chain", parent_run_id, run, why: `Not submitted by on_finish: ${why}` }]);
}
