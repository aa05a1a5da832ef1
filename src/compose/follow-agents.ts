import type { AgentGate } from "../define/agent-gate.ts";
import type { openSchemaChecker } from "../define/json-schema/checker.ts";
import { watchAgents } from "../define/watch-agents.ts";
import type { AgentRegistry } from "../dispatch/agent-registry.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import type { Scheduler } from "../trigger/scheduler.ts";

interface FollowOptions {
  /** Receives all faults each time they change. */
  onAgentFaults?: ((faults: readonly DefinitionFault[]) => void) | undefined;
  agentGate?: AgentGate | null | undefined;
}

/** Keeps the agent registry and the schedules in sync with the files of a directory. Resolves after the first read. */
export async function followAgents(
  directory: string,
  agents: AgentRegistry,
  schemas: ReturnType<typeof openSchemaChecker>,
  scheduler: Scheduler | null,
  { onAgentFaults, agentGate }: FollowOptions,
): Promise<() => Promise<void>> {
  const reportFaults =
    onAgentFaults ??
    ((faults) => faults.forEach((fault) => process.emitWarning(describeFault(fault), { code: fault.code })));
  return new Promise((resolve) => {
    const watch = watchAgents(
      directory,
      schemas,
      ({ agents: loaded, faults }) => {
        agents.setFileAgents(
          loaded.map(({ agent }) => agent),
          new Map(loaded.flatMap(({ agent, fault }) => (fault ? [[agent.name, fault]] : []))),
        );
        scheduler?.setFileAgents(
          loaded.map(({ agent }) => agent),
          faults.length === 0,
        );
        if (faults.length > 0) reportFaults(faults);
        resolve(() => watch.stop());
      },
      new AbortController().signal,
      { gate: agentGate ?? undefined },
    );
  });
}
