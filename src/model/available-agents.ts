import type { ListedAgent } from "./dispatch-ops.ts";

/** Leaves out the agents of draining and lost runners, unless no other runner offers the agent. */
export function preferAvailable<T extends Pick<ListedAgent, "runner_status">>(candidates: readonly T[]): readonly T[] {
  const online = candidates.filter(({ runner_status }) => runner_status === "online");
  return online.length === 0 ? candidates : online;
}

export function describeNameChoices(names: readonly string[]): string {
  return `Use one of these names: ${names.join(", ")}. To let any runner take the agent, put its file into the coordinator's agents directory.`;
}
