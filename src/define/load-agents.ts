import { readdir, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import type { Agent } from "../model/agent.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { agentFileEndings } from "./agent-file.ts";
import type { AgentChecks } from "./agent-entry.ts";
import { type Definitions, loadDefinitions } from "./load-definitions.ts";
import { isMissing, createUnreadableFault } from "./read-definition.ts";

export interface LoadedAgents {
  agents: LoadedAgent[];
  faults: DefinitionFault[];
  /** The number of files read. */
  files: number;
  /** Subdirectories, which are not searched for agents. */
  subdirectories: string[];
  /** Files that were read because a fleet file refers to them. */
  referenced: string[];
}

export interface LoadedAgent {
  agent: Agent;
  file: string;
  /** The line of the agent's name. */
  line: number | null;
  /** The file that was loaded: `file` itself, or the fleet file that refers to it. */
  source: string;
  /** Set if the file is invalid now and this is its last valid definition. Describes what is wrong. */
  fault?: string;
}

/**
 * Loads every agent of a directory, or of a single file. An invalid file is reported and the others still load. A file
 * that was valid in `previous` keeps its agents, so that a typo does not unpublish them.
 */
export async function loadAgents(
  directory: string,
  checks: AgentChecks,
  previous: readonly LoadedAgent[] = [],
): Promise<LoadedAgents> {
  try {
    if ((await stat(directory)).isFile()) return await loadAgentFiles([directory], checks, previous);
    const entries = (await readdir(directory, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));
    const files = entries.filter(({ name }) => isAgentFile(name)).map(({ name }) => join(directory, name));
    const subdirectories = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith("."));
    const loaded = await loadAgentFiles(files, checks, previous);
    return { ...loaded, subdirectories: subdirectories.map(({ name }) => join(directory, name)) };
  } catch (error) {
    const faults = [createUnreadableFault(directory, error)];
    const agents = isMissing(error) ? [] : previous.map((entry) => ({ ...entry, fault: describeFault(faults[0]!) }));
    return { agents, faults, files: 0, subdirectories: [], referenced: [] };
  }
}

export async function loadAgentFiles(
  files: readonly string[],
  checks: AgentChecks,
  previous: readonly LoadedAgent[] = [],
): Promise<LoadedAgents> {
  const all = await Promise.all(files.map((file) => loadDefinitions(file, checks)));
  const definitionsByFile = dropFleetMembers(all);
  const agents = definitionsByFile.flatMap((definitions) => keepValidAgents(definitions, previous));
  const faults = definitionsByFile.flatMap((definitions) => [
    ...definitions.faults,
    ...definitions.entries.flatMap((entry) => entry.faults ?? []),
  ]);
  const unique = agents.flatMap((loaded): LoadedAgent[] => {
    const { name } = loaded.agent;
    const duplicates = agents.filter(({ agent }) => agent.name === name);
    if (duplicates.length === 1) return [loaded];
    // Only the author knows which duplicate is intended, so none of them loads, except one that was loaded before.
    const kept = duplicates.find(({ file }) => previous.some((old) => old.file === file && old.agent.name === name));
    const fault = createDuplicateFault(name, duplicates, kept);
    if (loaded === duplicates[0]) faults.push(fault);
    return loaded === kept ? [{ ...loaded, fault: describeFault(fault) }] : [];
  });
  const referenced = [...new Set(definitionsByFile.flatMap((definitions) => definitions.referenced))];
  const count = new Set([...files, ...referenced]).size;
  return { agents: unique, faults, files: count, subdirectories: [], referenced };
}

/** Drops files that a fleet file refers to: they belong to that fleet. */
function dropFleetMembers(all: readonly Definitions[]): Definitions[] {
  const kept = new Set(all);
  for (const candidate of all)
    // If two files refer to each other, one of them stays and reports the cycle.
    if ([...kept].some((other) => other !== candidate && other.referenced.includes(candidate.file)))
      kept.delete(candidate);
  return [...kept];
}

/** The agents of one file. An invalid agent is replaced by its last valid definition, if there is one. */
function keepValidAgents(
  { file, entries, faults, gone }: Definitions,
  previous: readonly LoadedAgent[],
): LoadedAgent[] {
  const old = gone ? [] : previous.filter(({ source }) => source === file);
  const kept = entries.flatMap((entry): LoadedAgent[] => {
    if (entry.agent) return [{ agent: entry.agent, file: entry.file, line: entry.line, source: file }];
    const last = old.find(({ file: oldFile, agent }) =>
      entry.name === undefined ? oldFile === entry.file : agent.name === entry.name,
    );
    return last ? [{ ...last, fault: entry.faults.map(describeFault).join("\n") }] : [];
  });
  if (faults.length === 0) return kept;
  const missing = old.filter(({ agent }) => !kept.some((loaded) => loaded.agent.name === agent.name));
  return [...kept, ...missing.map((loaded) => ({ ...loaded, fault: faults.map(describeFault).join("\n") }))];
}

/** Hidden files are usually editor leftovers, and a README is documentation. */
export function isAgentFile(name: string): boolean {
  return (
    !name.startsWith(".") &&
    name.toLowerCase() !== "readme.md" &&
    agentFileEndings.includes(extname(name).toLowerCase())
  );
}

function createDuplicateFault(
  name: string,
  duplicates: readonly LoadedAgent[],
  kept: LoadedAgent | undefined,
): DefinitionFault {
  const files = duplicates.map(({ file, line }) => (line === null ? file : `${file}:${line}`)).join(", ");
  const result = kept ? `${kept.file} was loaded first and stays in use` : "none of them is loaded";
  return {
    code: "DROVER-AGT-005",
    file: duplicates[0]!.file,
    line: duplicates[0]!.line,
    path: "name",
    message: `the agent ${name} is defined more than once: ${files}; ${result}`,
    next: "Rename or remove all but one.",
  };
}
