import { readdir, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import type { Agent } from "../model/agent.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { agentFileEndings } from "./agent-file.ts";
import type { AgentChecks } from "./agent-entry.ts";
import { type Definitions, loadDefinitions } from "./load-definitions.ts";
import { isMissing, unreadable } from "./read-definition.ts";

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
 * that was valid `before` keeps its previous agents, so a slip in an editor does not unpublish them.
 */
export async function loadAgents(
  directory: string,
  checks: AgentChecks,
  before: readonly LoadedAgent[] = [],
): Promise<LoadedAgents> {
  try {
    if ((await stat(directory)).isFile()) return await loadAgentFiles([directory], checks, before);
    const entries = (await readdir(directory, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));
    const files = entries.filter(({ name }) => isAgentFile(name)).map(({ name }) => join(directory, name));
    const subdirectories = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith("."));
    const loaded = await loadAgentFiles(files, checks, before);
    return { ...loaded, subdirectories: subdirectories.map(({ name }) => join(directory, name)) };
  } catch (error) {
    const faults = [unreadable(directory, error)];
    const agents = isMissing(error) ? [] : before.map((each) => ({ ...each, fault: describeFault(faults[0]!) }));
    return { agents, faults, files: 0, subdirectories: [], referenced: [] };
  }
}

export async function loadAgentFiles(
  files: readonly string[],
  checks: AgentChecks,
  before: readonly LoadedAgent[] = [],
): Promise<LoadedAgents> {
  const all = await Promise.all(files.map((file) => loadDefinitions(file, checks)));
  const read = withoutFleetMembers(all);
  const agents = read.flatMap((definitions) => keptAgents(definitions, before));
  const faults = read.flatMap(({ faults: own, entries }) => [...own, ...entries.flatMap((one) => one.faults ?? [])]);
  const unique = agents.flatMap((each): LoadedAgent[] => {
    const { name } = each.agent;
    const same = agents.filter(({ agent }) => agent.name === name);
    if (same.length === 1) return [each];
    // only the author knows which duplicate is meant, so none of them loads, except one that was loaded before
    const kept = same.find(({ file }) => before.some((old) => old.file === file && old.agent.name === name));
    const duplicate = duplicateFault(name, same, kept);
    if (each === same[0]) faults.push(duplicate);
    return each === kept ? [{ ...each, fault: describeFault(duplicate) }] : [];
  });
  const referenced = [...new Set(read.flatMap((one) => one.referenced))];
  const count = new Set([...files, ...referenced]).size;
  return { agents: unique, faults, files: count, subdirectories: [], referenced };
}

/** Drops files that a fleet file refers to: they are part of that fleet, not agents by themselves. */
function withoutFleetMembers(all: readonly Definitions[]): Definitions[] {
  const left = new Set(all);
  for (const one of all)
    // if two files refer to each other, one of them stays and reports the cycle
    if ([...left].some((other) => other !== one && other.referenced.includes(one.file))) left.delete(one);
  return [...left];
}

/** The agents of one file. An invalid agent is replaced by its last valid definition, if there is one. */
function keptAgents({ file, entries, faults, gone }: Definitions, before: readonly LoadedAgent[]): LoadedAgent[] {
  const old = gone ? [] : before.filter(({ source }) => source === file);
  const kept = entries.flatMap((entry): LoadedAgent[] => {
    if (entry.agent) return [{ agent: entry.agent, file: entry.file, line: entry.line, source: file }];
    const last = old.find((each) =>
      entry.name === undefined ? each.file === entry.file : each.agent.name === entry.name,
    );
    return last ? [{ ...last, fault: entry.faults.map(describeFault).join("\n") }] : [];
  });
  if (faults.length === 0) return kept;
  const missing = old.filter(({ agent }) => !kept.some((each) => each.agent.name === agent.name));
  return [...kept, ...missing.map((each) => ({ ...each, fault: faults.map(describeFault).join("\n") }))];
}

/** Hidden files are usually editor leftovers, and a README is documentation. */
export function isAgentFile(name: string): boolean {
  return (
    !name.startsWith(".") &&
    name.toLowerCase() !== "readme.md" &&
    agentFileEndings.includes(extname(name).toLowerCase())
  );
}

function duplicateFault(name: string, same: readonly LoadedAgent[], kept: LoadedAgent | undefined): DefinitionFault {
  const files = same.map(({ file, line }) => (line === null ? file : `${file}:${line}`)).join(", ");
  const result = kept ? `${kept.file} was loaded first and stays in use` : "none of them is loaded";
  return {
    code: "DROVER-AGT-005",
    file: same[0]!.file,
    line: same[0]!.line,
    path: "name",
    message: `the agent ${name} is defined more than once: ${files}; ${result}`,
    next: "Rename or remove all but one.",
  };
}
