import { createHash } from "node:crypto";
import type { GetSlotTimes } from "../define/slot-times.ts";
import type { Agent } from "../model/agent.ts";
import type { NewSchedule } from "../model/schedule.ts";
import type { SyncSchedules } from "../model/schedule-ops.ts";

type AgentSource = SyncSchedules["source"];

/** The owner of schedules in agent files: the holder of the coordinator's own token. */
export const fileOwner = "admin";

/** Builds the schedules that an agent defines. Every coordinator gives them the same ids. */
export function buildSchedules(
  agent: Agent,
  source: AgentSource,
  created_by: string,
  now: number,
  getSlotTimes: GetSlotTimes,
): NewSchedule[] {
  return (agent.schedules ?? []).map((definition) => {
    const due = getSlotTimes(definition, now).next(now);
    return {
      schedule_id: createScheduleId(source, agent.name, definition.name),
      agent_name: agent.name,
      created_by,
      source,
      definition,
      anchor: new Date(now).toISOString(),
      due_at: due === null ? null : new Date(due).toISOString(),
    };
  });
}

/** The number of agents per operation. Other writers wait while an operation is stored. */
const batchSize = 50;

/**
 * Returns the operations that update the record to match this coordinator's agent files. `removedAgents` lists the agents that
 * this coordinator has read before and that no longer exist. "unknown" means that it is the only coordinator, so every
 * agent that is not in its files is gone.
 */
export function syncFileSchedules(
  agents: readonly Agent[],
  removedAgents: readonly string[] | "unknown",
  now: number,
  getSlotTimes: GetSlotTimes,
): SyncSchedules[] {
  const build = (agent: Agent): NewSchedule[] => buildSchedules(agent, "file", fileOwner, now, getSlotTimes);
  const sync = { op: "sync_schedules", source: "file" } as const;
  if (removedAgents === "unknown") return [{ ...sync, agents: null, schedules: agents.flatMap(build) }];
  const ops: SyncSchedules[] = removedAgents.length === 0 ? [] : [{ ...sync, agents: removedAgents, schedules: [] }];
  for (let start = 0; start < agents.length; start += batchSize) {
    const batch = agents.slice(start, start + batchSize);
    ops.push({ ...sync, agents: batch.map(({ name }) => name), schedules: batch.flatMap(build) });
  }
  return ops;
}

function createScheduleId(...parts: [AgentSource, agent: string, name: string]): string {
  return `agent-${createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32)}`;
}
