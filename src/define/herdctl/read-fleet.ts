import { realpathSync } from "node:fs";
import { basename, dirname, extname, resolve } from "node:path";
import type { DefinitionFault } from "../../model/definition-fault.ts";
import { isRecord, mergeKeys } from "../merge-keys.ts";
import { readDefinition } from "../read-definition.ts";
import { parseYaml } from "../structured-text.ts";
import { mapHooks } from "./map-hooks.ts";
import { mapKeys } from "./map-keys.ts";
import { mapVariables } from "./map-variables.ts";
import { note, type Note, selectPart, type Source } from "./source.ts";

/** A herdctl fleet converted to Drover's definitions. */
export interface ImportedFleet {
  description: string | null;
  defaults: Record<string, unknown>;
  agents: ({ name: string } & Record<string, unknown>)[];
  notes: Note[];
  /** Files that could not be read. Their agents are missing. */
  faults: DefinitionFault[];
  /** The variables the agents use. */
  variables: string[];
}

interface ReadContext {
  notes: Note[];
  faults: DefinitionFault[];
  variables: Set<string>;
  ancestors: readonly string[];
}

/** Reads a herdctl.yaml with all files it refers to, or the file of a single agent. */
export async function readHerdctl(file: string): Promise<ImportedFleet> {
  const context: ReadContext = { notes: [], faults: [], variables: new Set(), ancestors: [] };
  const source = await readSource(file, context);
  const isAgent = source !== null && Object.hasOwn(source.keys, "name");
  const fleet = source && !isAgent ? await readFleet(source, {}, null, context) : null;
  const agents = isAgent ? [toAgent([source], {}, null)] : (fleet?.agents ?? []);
  return {
    description: fleet?.description ?? null,
    defaults: { executor: "claude-sdk", ...fleet?.defaults },
    agents: agents.flatMap((agent) => agent ?? []),
    notes: context.notes,
    faults: context.faults,
    variables: [...context.variables].sort(),
  };
}

interface Fleet {
  description: string | null;
  defaults: Record<string, unknown>;
  agents: (ImportedFleet["agents"][number] | null)[];
}

const fleetKeys: Record<string, string> = {
  web: "has no equivalent: `drover up` serves its own pages",
  webhooks: "has no equivalent",
  docker: "has no equivalent: set `isolation` in the profile of the runner. Agents are NOT in containers",
  chat: "has no equivalent: `drover chat` talks to an agent in the terminal",
  working_directory: "has no equivalent: set working_directory for each agent",
  workspace: "has no equivalent: set working_directory for each agent",
};

/**
 * `inheritedDefaults` are the defaults of the enclosing fleets, except for the outermost fleet, whose defaults are written
 * separately. `prefix` precedes the name of each agent.
 */
async function readFleet(
  source: Source,
  inheritedDefaults: Record<string, unknown>,
  prefix: string | null,
  context: ReadContext,
): Promise<Fleet> {
  const { version: _version, fleet, defaults, agents, fleets, ...others } = source.keys;
  for (const key of Object.keys(others)) note(source, [key], fleetKeys[key] ?? "is an unknown key; it was skipped");
  const directory = dirname(source.file);
  const ownDefaults = isRecord(defaults) ? mapKeys(selectPart(source, ["defaults"], defaults), directory) : {};
  const effectiveDefaults = prefix === null ? {} : mergeKeys(inheritedDefaults, ownDefaults);
  const hasDirectory =
    ownDefaults["working_directory"] !== undefined || effectiveDefaults["working_directory"] !== undefined;
  const importedAgents: Fleet["agents"] = [];
  for (const [index, reference] of toList(agents).entries()) {
    const { path, overrides, ...unknownKeys } = isRecord(reference) ? reference : {};
    for (const key of Object.keys(unknownKeys)) note(source, ["agents", index, key], "is an unknown key");
    if (typeof path !== "string") {
      note(source, ["agents", index], "has no path; it was skipped");
      continue;
    }
    const agent = await readSource(resolve(directory, path), context);
    if (agent === null) continue;
    const changes = isRecord(overrides) ? [selectPart(source, ["agents", index, "overrides"], overrides)] : [];
    importedAgents.push(toAgent([agent, ...changes], effectiveDefaults, prefix, hasDirectory));
  }
  for (const [index, reference] of toList(fleets).entries())
    importedAgents.push(...(await readNestedFleet(source, index, reference, effectiveDefaults, prefix, context)));
  const { description } = isRecord(fleet) ? fleet : {};
  return {
    description: typeof description === "string" ? description : null,
    defaults: ownDefaults,
    agents: importedAgents,
  };
}

async function readNestedFleet(
  source: Source,
  index: number,
  reference: unknown,
  inheritedDefaults: Record<string, unknown>,
  prefix: string | null,
  context: ReadContext,
): Promise<Fleet["agents"]> {
  const { path, name, overrides } = isRecord(reference) ? reference : {};
  if (overrides !== undefined) note(source, ["fleets", index, "overrides"], "has no equivalent; it was skipped");
  if (typeof path !== "string") {
    note(source, ["fleets", index], "has no path; it was skipped");
    return [];
  }
  const file = resolve(dirname(source.file), path);
  const nestedSource = await readSource(file, {
    ...context,
    ancestors: [...context.ancestors, toRealPath(source.file)],
  });
  if (nestedSource === null) return [];
  const { fleet } = nestedSource.keys;
  const ownName = isRecord(fleet) && typeof fleet["name"] === "string" ? fleet["name"] : null;
  const fleetName = typeof name === "string" ? name : (ownName ?? basename(dirname(file)));
  const nestedPrefix = prefix === null ? fleetName : `${prefix}.${fleetName}`;
  return (
    await readFleet(nestedSource, inheritedDefaults, nestedPrefix, {
      ...context,
      ancestors: [...context.ancestors, toRealPath(source.file)],
    })
  ).agents;
}

/** Merges an agent's file with the fleet's overrides. Its working directory defaults to the directory of its file. */
function toAgent(
  sources: readonly Source[],
  defaults: Record<string, unknown>,
  prefix: string | null,
  hasDirectory = false,
): ImportedFleet["agents"][number] | null {
  const [first] = sources;
  // In herdctl, paths in overrides are relative to the agent's file too.
  const directory = dirname(first!.file);
  const mapped = sources.map((source) => mapKeys(source, directory)).reduce(mergeKeys);
  const agentKeys = { ...mapped, ...mapVariables(mapHooks(sources), first!) };
  const keys = mergeKeys(defaults, agentKeys);
  if (typeof keys["name"] !== "string") {
    note(first!, ["name"], "is missing; the agent was skipped");
    return null;
  }
  const name = prefix === null ? keys["name"] : `${prefix}.${keys["name"]}`;
  const workingDirectory =
    keys["working_directory"] === undefined && !hasDirectory ? { working_directory: directory } : {};
  return { ...keys, ...workingDirectory, name };
}

async function readSource(file: string, context: ReadContext): Promise<Source | null> {
  const fail = (line: number | null, message: string, next: string): null => {
    context.faults.push({ code: "DROVER-AGT-002", file, line, path: "", message, next });
    return null;
  };
  if (context.ancestors.includes(toRealPath(file)))
    return fail(null, "the fleet includes itself", "Remove it from `fleets`.");
  const content = await readDefinition(file);
  if (!content.ok) {
    context.faults.push(...content.faults);
    return null;
  }
  if (![".yaml", ".yml"].includes(extname(file).toLowerCase()))
    return fail(null, "is not a YAML file", "Pass a herdctl.yaml or an agent's file.");
  const parsed = parseYaml(content.text);
  if (!parsed.ok)
    return fail(parsed.faults[0]!.line, `the file is not valid YAML: ${parsed.faults[0]!.problem}`, "Fix that line.");
  const keys = parsed.value ?? {};
  if (!isRecord(keys)) return fail(1, "the file is not an object of keys and values", "Pass a herdctl.yaml.");
  return { file, keys, findLine: parsed.findLine, notes: context.notes, variables: context.variables };
}

function toList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function toRealPath(file: string): string {
  try {
    return realpathSync(file);
  } catch (error) {
    // Reading the file will report the error.
    if (error instanceof Error && "code" in error) return file;
    throw error;
  }
}
