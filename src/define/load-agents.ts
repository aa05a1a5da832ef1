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
  /** How many files were read. */
  files: number;
  /** Folders in the folder, which are not read: an agent lies in the folder itself. */
  folders: string[];
  /** Files that were read because a fleet file names them. */
  others: string[];
}

export interface LoadedAgent {
  agent: Agent;
  file: string;
  /** Where the file names it. */
  line: number | null;
  /** The file that was to be loaded: `file`, or the fleet file that names it. */
  source: string;
  /** What is wrong with the file now, where this is the last definition of it that was sound. */
  fault?: string;
}

/**
 * Every agent of a folder, or of a file in its place. A file at fault is named and the others still load; a file that was
 * sound `before` keeps its agents as they were, so that a slip in an editor unpublishes nothing.
 */
export async function loadAgents(
  folder: string,
  checks: AgentChecks,
  before: readonly LoadedAgent[] = [],
): Promise<LoadedAgents> {
  try {
    if ((await stat(folder)).isFile()) return await loadAgentFiles([folder], checks, before);
    const entries = (await readdir(folder, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));
    const files = entries.filter(({ name }) => isAgentFile(name)).map(({ name }) => join(folder, name));
    const folders = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith("."));
    const loaded = await loadAgentFiles(files, checks, before);
    return { ...loaded, folders: folders.map(({ name }) => join(folder, name)) };
  } catch (error) {
    const faults = [unreadable(folder, error)];
    const agents = isMissing(error) ? [] : before.map((each) => ({ ...each, fault: describeFault(faults[0]!) }));
    return { agents, faults, files: 0, folders: [], others: [] };
  }
}

export async function loadAgentFiles(
  files: readonly string[],
  checks: AgentChecks,
  before: readonly LoadedAgent[] = [],
): Promise<LoadedAgents> {
  const all = await Promise.all(files.map((file) => loadDefinitions(file, checks)));
  const read = unclaimed(all);
  const agents = read.flatMap((definitions) => keptAgents(definitions, before));
  const faults = read.flatMap(({ faults: own, entries }) => [...own, ...entries.flatMap((one) => one.faults ?? [])]);
  const unique = agents.flatMap((each): LoadedAgent[] => {
    const { name } = each.agent;
    const same = agents.filter(({ agent }) => agent.name === name);
    if (same.length === 1) return [each];
    // of two with one name neither loads, as only their author knows which is meant, but one that was there stays
    const stays = same.find(({ file }) => before.some((old) => old.file === file && old.agent.name === name));
    const twice = twinFault(name, same, stays);
    if (each === same[0]) faults.push(twice);
    return each === stays ? [{ ...each, fault: describeFault(twice) }] : [];
  });
  const others = [...new Set(read.flatMap((one) => one.others))];
  return { agents: unique, faults, files: new Set([...files, ...others]).size, folders: [], others };
}

/** A file that a fleet file names is part of that fleet, and no agent by itself. */
function unclaimed(all: readonly Definitions[]): Definitions[] {
  const left = new Set(all);
  for (const one of all)
    // of two that name each other one stays, and says so
    if ([...left].some((other) => other !== one && other.others.includes(one.file))) left.delete(one);
  return [...left];
}

/** The agents of one file, and for each that is at fault the last sound definition of it. */
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

/** Hidden files are editors' leftovers, and a README is for people. */
export function isAgentFile(name: string): boolean {
  return (
    !name.startsWith(".") &&
    name.toLowerCase() !== "readme.md" &&
    agentFileEndings.includes(extname(name).toLowerCase())
  );
}

function twinFault(name: string, same: readonly LoadedAgent[], stays: LoadedAgent | undefined): DefinitionFault {
  const files = same.map(({ file, line }) => (line === null ? file : `${file}:${line}`)).join(", ");
  const kept = stays ? `${stays.file}, which was there before, stays` : "none of them is loaded";
  return {
    code: "DROVER-AGT-005",
    file: same[0]!.file,
    line: same[0]!.line,
    path: "name",
    message: `the agent ${name} is defined more than once: ${files}; ${kept}`,
    next: "Rename or remove all but one.",
  };
}
