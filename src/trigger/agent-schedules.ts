import { createHash } from "node:crypto";
import type { FireTimesOf } from "../define/fire-times.ts";
import type { Agent } from "../model/agent.ts";
import type { NewSchedule } from "../model/schedule.ts";
import type { SyncSchedules } from "../model/schedule-ops.ts";

type AgentSource = SyncSchedules["source"];

/** Who owns the schedules of agent files: whoever has the coordinator's own token. */
export const fileOwner = "admin";

/** The schedules that an agent defines, as new ones. Every coordinator gives them the same ids. */
export function schedulesOf(
  agent: Agent,
  source: AgentSource,
  created_by: string,
  now: number,
  fireTimes: FireTimesOf,
): NewSchedule[] {
  return (agent.schedules ?? []).map((definition) => {
    const due = fireTimes(definition, now).next(now);
    return {
      schedule_id: idOf(source, agent.name, definition.name),
      agent_name: agent.name,
      created_by,
      source,
      definition,
      anchor: new Date(now).toISOString(),
      due_at: due === null ? null : new Date(due).toISOString(),
    };
  });
}

/** Some at a time: whoever else wants to write waits meanwhile. */
const agentsAtOnce = 50;

/**
 * What brings the record up to date with the agent files that this coordinator reads now. `gone` are agents it read before;
 * "unknown": it is the only coordinator, and whatever is not in its files has gone.
 */
export function syncFileSchedules(
  agents: readonly Agent[],
  gone: readonly string[] | "unknown",
  now: number,
  fireTimes: FireTimesOf,
): SyncSchedules[] {
  const ofAgent = (agent: Agent): NewSchedule[] => schedulesOf(agent, "file", fileOwner, now, fireTimes);
  const op = { op: "sync_schedules", source: "file" } as const;
  if (gone === "unknown") return [{ ...op, agents: null, schedules: agents.flatMap(ofAgent) }];
  const ops: SyncSchedules[] = gone.length === 0 ? [] : [{ ...op, agents: gone, schedules: [] }];
  for (let from = 0; from < agents.length; from += agentsAtOnce) {
    const some = agents.slice(from, from + agentsAtOnce);
    ops.push({ ...op, agents: some.map(({ name }) => name), schedules: some.flatMap(ofAgent) });
  }
  return ops;
}

function idOf(...parts: [AgentSource, agent: string, name: string]): string {
  return `agent-${createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32)}`;
}
