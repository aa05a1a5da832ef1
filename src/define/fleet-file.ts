import { realpathSync } from "node:fs";
import { dirname, resolve } from "node:path";
import * as z from "zod";
import { agentSchema } from "../model/agent.ts";
import type { DefinitionFault } from "../model/definition-fault.ts";
import { agentShape, type AgentText, readAgentText, ignoredKeys } from "./agent-file.ts";
import { checkShape, type Origin } from "./check-shape.ts";
import { type AgentChecks, checkAgentEntry, type AgentEntry, resolvePaths } from "./agent-entry.ts";
import { isRecord, mergeKeys } from "./merge-keys.ts";
import { readDefinition } from "./read-definition.ts";

const keys = z.record(z.string(), z.unknown());

/** Several agents in one file. */
const fleetSchema = z.strictObject({
  description: z.string().optional(),
  /** Keys of every agent that does not say otherwise. */
  defaults: keys.optional(),
  /** An agent, or the path of an agent's file with the keys that it has here. */
  agents: z.array(keys).optional(),
  /** Other fleet files. */
  include: z.array(z.string().min(1)).optional(),
});

const fleetShape = { ...agentShape, schema: fleetSchema } as const;
const defaultsShape = {
  ...agentShape,
  schema: agentSchema.omit({ name: true, title: true, type: true, command: true }).partial(),
} as const;
const changesShape = { ...agentShape, schema: agentSchema.partial() } as const;

/** No agent has any of these keys. */
export function isFleet(value: unknown): boolean {
  return isRecord(value) && ["agents", "defaults", "include"].some((key) => Object.hasOwn(value, key));
}

export interface FleetAgents {
  entries: AgentEntry[];
  /** Of the file itself: which agents it would have is not known. */
  faults: DefinitionFault[];
  /** Other files that it names. */
  others: string[];
}

/** What the loading of one fleet file has come by. */
interface Trail {
  checks: AgentChecks;
  /** The fleet files that led here. */
  above: readonly string[];
  /** Every file that was named so far, by its real path. */
  seen: Set<string>;
  defaults: Record<string, unknown>;
}

export function loadFleet(file: string, text: AgentText, checks: AgentChecks): Promise<FleetAgents> {
  return loadOne(file, text, { checks, above: [], seen: new Set([identity(file)]), defaults: {} });
}

async function loadOne(file: string, { value, origin }: AgentText, trail: Trail): Promise<FleetAgents> {
  const { inexact: _, ...place } = origin;
  const checked = checkShape(value, fleetShape, place);
  if (!checked.ok) return { entries: [], faults: checked.faults, others: [] };
  const { defaults = {}, agents = [], include = [] } = checked.value;
  const below = under(origin, ["defaults"]);
  const wrong = checkShape(defaults, defaultsShape, below);
  const faults = wrong.ok ? [] : wrong.faults.map((fault) => ({ ...fault, path: `defaults.${fault.path}` }));
  const inner: Trail = {
    ...trail,
    above: [...trail.above, file],
    // what is wrong with them is said once, and not again for each agent
    defaults: mergeKeys(trail.defaults, wrong.ok ? resolvePaths(defaults, dirname(file)) : {}),
  };
  const others: string[] = [];
  const entries: AgentEntry[] = [];
  for (const [index, own] of agents.entries()) {
    const loaded = await loadEntry(
      file,
      own,
      under(origin, ["agents", index], (key) => wrong.ok && !Object.hasOwn(own, key) && Object.hasOwn(defaults, key)),
      inner,
    );
    entries.push(loaded.entry);
    others.push(...loaded.others);
  }
  for (const [index, path] of include.entries()) {
    const included = await loadIncluded(resolve(dirname(file), path), under(origin, ["include", index]), inner);
    entries.push(...included.entries);
    faults.push(...included.faults);
    others.push(...included.others);
  }
  // without the defaults an agent might be allowed more than its author meant
  return { entries: wrong.ok ? entries : entries.filter(({ agent }) => agent === undefined), faults, others };
}

async function loadEntry(
  fleet: string,
  { path, ...own }: Record<string, unknown>,
  origin: Origin,
  trail: Trail,
): Promise<{ entry: AgentEntry; others: string[] }> {
  const name = typeof own["name"] === "string" ? { name: own["name"] } : {};
  const failed = (file: string, faults: DefinitionFault[], others: string[]) => ({
    entry: { file, ...name, faults },
    others,
  });
  if (path === undefined) {
    const text = { value: own, origin, judge: (checked: Parameters<AgentText["judge"]>[0]) => checked };
    const entry = await checkAgentEntry(fleet, text, trail.checks, (fields) =>
      withDefaults(trail.defaults, fields, {}),
    );
    return { entry: entry.agent ? entry : { ...entry, ...name }, others: [] };
  }
  if (typeof path !== "string" || path === "")
    return failed(fleet, [at(origin, "path", "path is not the path of a file", "Name an agent file.")], []);
  const file = resolve(dirname(fleet), path);
  const changes = checkShape(own, changesShape, origin);
  if (!changes.ok) return failed(fleet, changes.faults, [file]);
  const twice = namedBefore(file, origin, "path", trail);
  if (twice) return failed(fleet, [twice], []);
  const content = await readDefinition(file);
  if (!content.ok) return failed(file, content.faults, [file]);
  const text = readAgentText(file, content.text);
  if ("ok" in text) return failed(file, text.faults, [file]);
  if (isFleet(text.value))
    return failed(fleet, [at(origin, "path", `${path} is a fleet file`, "Name it under include.")], [file]);
  const over = resolvePaths(own, dirname(fleet));
  const entry = await checkAgentEntry(file, text, trail.checks, (fields) => withDefaults(trail.defaults, fields, over));
  return { entry: entry.agent ? entry : { ...entry, ...name }, others: [file] };
}

async function loadIncluded(file: string, origin: Origin, trail: Trail): Promise<FleetAgents> {
  const whole = (faults: DefinitionFault[]): FleetAgents => ({ entries: [], faults, others: [file] });
  const twice = namedBefore(file, origin, "include", trail);
  if (twice) return { ...whole([twice]), others: [] };
  const content = await readDefinition(file);
  if (!content.ok) return whole(content.faults);
  const text = readAgentText(file, content.text);
  if ("ok" in text) return whole(text.faults);
  if (!isFleet(text.value))
    return whole([at(origin, "include", `${file} is no fleet file`, "Name an agent's file under agents, as path.")]);
  const loaded = await loadOne(file, text, trail);
  return { ...loaded, others: [file, ...loaded.others] };
}

/** Each file is read once: a fleet that leads back to itself would never end, and one twice has every name twice. */
function namedBefore(file: string, origin: Origin, key: string, { above, seen }: Trail): DefinitionFault | null {
  const real = identity(file);
  if (!seen.has(real)) {
    seen.add(real);
    return null;
  }
  const from = above.findIndex((each) => identity(each) === real);
  const message =
    from < 0
      ? `${file} is named twice`
      : `the fleet file includes itself: ${[...above.slice(from), file].join(" -> ")}`;
  return { ...at(origin, key, message, "Remove one of the two."), code: "DROVER-AGT-008" };
}

/** By whatever path it is reached. */
function identity(file: string): string {
  try {
    return realpathSync(file);
  } catch (error) {
    // that it cannot be read is told where it is read
    if (error instanceof Error && "code" in error) return file;
    throw error;
  }
}

/** A default that does nothing in an agent of its type is not meant for it. */
function withDefaults(
  defaults: Record<string, unknown>,
  fields: Record<string, unknown>,
  changes: Record<string, unknown>,
): Record<string, unknown> {
  const own = mergeKeys(fields, changes);
  const isCommand = own["command"] !== undefined && own["command"] !== null;
  const type = own["type"] ?? (isCommand ? "procedural" : "autonomous");
  const executor = own["executor"] ?? (type === "procedural" ? undefined : defaults["executor"]);
  const useless = new Set([...ignoredKeys({ type, executor }), ...(type === "procedural" ? ["executor"] : [])]);
  return mergeKeys(Object.fromEntries(Object.entries(defaults).filter(([key]) => !useless.has(key))), own);
}

/** The place of a part of the file. A key that stands in the defaults instead is found there. */
function under(
  { file, lineOf, inexact = [] }: Origin,
  prefix: readonly PropertyKey[],
  isDefault: (key: PropertyKey) => boolean = () => false,
): Origin {
  const isIn = (path: readonly PropertyKey[]): boolean => prefix.every((step, index) => path[index] === step);
  return {
    file,
    lineOf:
      lineOf &&
      ((path) =>
        path[0] !== undefined && isDefault(path[0]) ? lineOf(["defaults", ...path]) : lineOf([...prefix, ...path])),
    inexact: inexact.filter(({ path }) => isIn(path)).map((one) => ({ ...one, path: one.path.slice(prefix.length) })),
  };
}

function at({ file, lineOf }: Origin, path: string, message: string, next: string): DefinitionFault {
  return { code: "DROVER-AGT-004", file, line: lineOf?.([path]) ?? null, path, message, next };
}
