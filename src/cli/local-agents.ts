import { existsSync } from "node:fs";
import { loadAgents } from "../define/load-agents.ts";
import { openSchemaChecker } from "../define/json-schema/checker.ts";
import { type Project, openLocalStore } from "../local.ts";
import type { Agent } from "../model/agent.ts";
import { type AgentPosition, toAgentPosition } from "../model/agent-position.ts";
import { describeFault } from "../model/definition-fault.ts";
import { databaseFile, recordDirectory } from "../model/state-layout.ts";
import { findProfileDirectories, isSameDirectory, openProfiles } from "../compose/open-profiles.ts";
import { write } from "./io.ts";
import type { CommandInput } from "./options.ts";
import { findAgentsDirectory } from "./agents-directory.ts";

export type LocalAgent = Agent & { source: "file" | "api" | "runner"; runner_id: null; fault?: string };

/**
 * Lists the agents that `drover run` can find without a coordinator, sorted by name. If several have the same name,
 * `drover run` uses the first one.
 */
export async function listLocalAgents(input: CommandInput, project: Project): Promise<LocalAgent[]> {
  const onNotice = (message: string): void => {
    if (!input.options["quiet"]) write(2, `drover: ${message}\n`);
  };
  const agentsDirectory = findAgentsDirectory(input, project);
  const { profiles, stop } = await openProfiles({
    names: null,
    directories: findProfileDirectories(input.cwd, project.config, true, input.env),
    env: input.env,
    onNotice,
    coordinatorAgentsDirectory: agentsDirectory,
    skipSchemaChecks: true,
  });
  await stop();
  const addSource = (source: LocalAgent["source"], agents: readonly Agent[]): LocalAgent[] =>
    agents.map((agent) => ({ ...agent, source, runner_id: null }));
  const all = [
    ...addSource("file", await readAgentFiles(agentsDirectory, onNotice)),
    ...addSource("api", await readStoredAgents(project)),
    ...addSource(
      "runner",
      // A profile may offer the files of the agents directory, which are already listed.
      profiles.flatMap(({ loaded, agents }) =>
        loaded.agentsDirectory && agentsDirectory && isSameDirectory(loaded.agentsDirectory, agentsDirectory)
          ? []
          : agents,
      ),
    ),
  ];
  return all.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

async function readAgentFiles(directory: string | null, onNotice: (message: string) => void): Promise<Agent[]> {
  if (directory === null) return [];
  const schemas = openSchemaChecker();
  const { agents, faults } = await loadAgents(directory, schemas);
  await schemas.stop();
  for (const fault of faults) onNotice(`${describeFault(fault)} [${fault.code}]`);
  return agents.map(({ agent }) => agent);
}

/** Reads the agents created over the API. Agents that a runner offered are not available without the coordinator. */
async function readStoredAgents(project: Project): Promise<Agent[]> {
  if (!existsSync(databaseFile(recordDirectory(project.locations.stateDirectory)))) return [];
  const store = await openLocalStore(project);
  try {
    const agents: Agent[] = [];
    for (let after: AgentPosition | undefined; ;) {
      const { items, more } = await store.read.agent_page({ limit: 1000, ...(after ? { after } : {}) });
      for (const { agent, source } of items) if (source === "api") agents.push(agent);
      const last = items.at(-1);
      if (!more || last === undefined) return agents;
      after = toAgentPosition(last);
    }
  } finally {
    await store.close();
  }
}
