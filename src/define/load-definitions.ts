import { extname } from "node:path";
import type { DefinitionFault } from "../model/definition-fault.ts";
import { type AgentChecks, checkAgentEntry } from "./agent-entry.ts";
import { parseAgentText } from "./agent-file.ts";
import { type FleetAgents, isFleet, loadFleet } from "./fleet-file.ts";
import { readDefinition } from "./read-definition.ts";

/** The definitions in one file: a single agent, or the agents of a fleet. */
export interface Definitions extends FleetAgents {
  file: string;
  /** The file does not exist. */
  gone: boolean;
}

export async function loadDefinitions(file: string, checks: AgentChecks): Promise<Definitions> {
  const failed = (faults: DefinitionFault[], gone = false): Definitions => ({
    file,
    entries: [],
    faults,
    gone,
    referenced: [],
  });
  const content = await readDefinition(file);
  if (!content.ok) return failed(content.faults, content.gone);
  const parsed = parseAgentText(file, content.text);
  if ("ok" in parsed) return failed(parsed.faults);
  if (extname(file).toLowerCase() !== ".md" && isFleet(parsed.value))
    return { file, gone: false, ...(await loadFleet(file, parsed, checks)) };
  return { ...failed([]), entries: [await checkAgentEntry(file, parsed, checks)] };
}
