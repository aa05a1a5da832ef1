import { realpathSync } from "node:fs";
import { dirname, resolve } from "node:path";
import * as z from "zod";
import { agentSchema } from "../model/agent.ts";
import type { DefinitionFault } from "../model/definition-fault.ts";
import { agentShape, type AgentText, parseAgentText, findIgnoredKeys } from "./agent-file.ts";
import { checkShape, type Origin } from "./check-shape.ts";
import { type AgentChecks, checkAgentEntry, type AgentEntry, resolvePaths } from "./agent-entry.ts";
import { isRecord, mergeKeys } from "./merge-keys.ts";
import { readDefinition } from "./read-definition.ts";

const keysSchema = z.record(z.string(), z.unknown());

/** Several agents in one file. */
const fleetSchema = z.strictObject({
  description: z.string().optional(),
  /** Default keys; an agent's own keys override them. */
  defaults: keysSchema.optional(),
  /** Each is a whole agent, or the `path` of an agent file with keys that override it. */
  agents: z.array(keysSchema).optional(),
  /** Other fleet files. */
  include: z.array(z.string().min(1)).optional(),
});

const fleetShape = { ...agentShape, schema: fleetSchema } as const;
const defaultsShape = {
  ...agentShape,
  schema: agentSchema.omit({ name: true, title: true, type: true, command: true }).partial(),
} as const;
const changesShape = { ...agentShape, schema: agentSchema.partial() } as const;

/** Recognizes a fleet file by keys that no agent has. */
export function isFleet(value: unknown): boolean {
  return isRecord(value) && ["agents", "defaults", "include"].some((key) => Object.hasOwn(value, key));
}

export interface FleetAgents {
  entries: AgentEntry[];
  /** Faults of the fleet file itself. If there are any, its agents are not loaded. */
  faults: DefinitionFault[];
  /** The files that the fleet file refers to. */
  referenced: string[];
}

/** State shared while a fleet file and its includes are loaded. */
interface LoadContext {
  checks: AgentChecks;
  /** The chain of fleet files that include this one, outermost first. */
  ancestors: readonly string[];
  /** The real paths of all files referred to so far. */
  loadedFiles: Set<string>;
  defaults: Record<string, unknown>;
}

export function loadFleet(file: string, parsed: AgentText, checks: AgentChecks): Promise<FleetAgents> {
  return loadFleetFile(file, parsed, { checks, ancestors: [], loadedFiles: new Set([toRealPath(file)]), defaults: {} });
}

async function loadFleetFile(file: string, { value, origin }: AgentText, context: LoadContext): Promise<FleetAgents> {
  const { inexact: _, ...fileOrigin } = origin;
  const checked = checkShape(value, fleetShape, fileOrigin);
  if (!checked.ok) return { entries: [], faults: checked.faults, referenced: [] };
  const { defaults = {}, agents = [], include = [] } = checked.value;
  const checkedDefaults = checkShape(defaults, defaultsShape, selectOrigin(origin, ["defaults"]));
  const faults = checkedDefaults.ok
    ? []
    : checkedDefaults.faults.map((fault) => ({ ...fault, path: `defaults.${fault.path}` }));
  const fleetContext: LoadContext = {
    ...context,
    ancestors: [...context.ancestors, file],
    // Report invalid defaults once, not again for each agent.
    defaults: mergeKeys(context.defaults, checkedDefaults.ok ? resolvePaths(defaults, dirname(file)) : {}),
  };
  const referenced: string[] = [];
  const entries: AgentEntry[] = [];
  for (const [index, keys] of agents.entries()) {
    const loaded = await loadEntry(
      file,
      keys,
      selectOrigin(
        origin,
        ["agents", index],
        (key) => checkedDefaults.ok && !Object.hasOwn(keys, key) && Object.hasOwn(defaults, key),
      ),
      fleetContext,
    );
    entries.push(loaded.entry);
    referenced.push(...loaded.referenced);
  }
  for (const [index, path] of include.entries()) {
    const included = await loadIncluded(
      resolve(dirname(file), path),
      selectOrigin(origin, ["include", index]),
      fleetContext,
    );
    entries.push(...included.entries);
    faults.push(...included.faults);
    referenced.push(...included.referenced);
  }
  // Without its defaults, an agent might be allowed more than its author intended.
  return {
    entries: checkedDefaults.ok ? entries : entries.filter(({ agent }) => agent === undefined),
    faults,
    referenced,
  };
}

async function loadEntry(
  fleet: string,
  { path, ...keys }: Record<string, unknown>,
  origin: Origin,
  context: LoadContext,
): Promise<{ entry: AgentEntry; referenced: string[] }> {
  const name = typeof keys["name"] === "string" ? { name: keys["name"] } : {};
  const fail = (file: string, faults: DefinitionFault[], referenced: string[]) => ({
    entry: { file, ...name, faults },
    referenced,
  });
  if (path === undefined) {
    const text = {
      value: keys,
      origin,
      addTextFaults: (checked: Parameters<AgentText["addTextFaults"]>[0]) => checked,
    };
    const entry = await checkAgentEntry(fleet, text, context.checks, (fields) =>
      applyDefaults(context.defaults, fields, {}),
    );
    return { entry: entry.agent ? entry : { ...entry, ...name }, referenced: [] };
  }
  if (typeof path !== "string" || path === "")
    return fail(
      fleet,
      [createKeyFault(origin, "path", "path is not a file path", "Set it to the path of an agent file.")],
      [],
    );
  const file = resolve(dirname(fleet), path);
  const changes = checkShape(keys, changesShape, origin);
  if (!changes.ok) return fail(fleet, changes.faults, [file]);
  const repeated = checkRepeatedFile(file, origin, "path", context);
  if (repeated) return fail(fleet, [repeated], []);
  const content = await readDefinition(file);
  if (!content.ok) return fail(file, content.faults, [file]);
  const parsed = parseAgentText(file, content.text);
  if ("ok" in parsed) return fail(file, parsed.faults, [file]);
  if (isFleet(parsed.value))
    return fail(
      fleet,
      [createKeyFault(origin, "path", `${path} is a fleet file`, "List it under include instead.")],
      [file],
    );
  const overrides = resolvePaths(keys, dirname(fleet));
  const entry = await checkAgentEntry(file, parsed, context.checks, (fields) =>
    applyDefaults(context.defaults, fields, overrides),
  );
  return { entry: entry.agent ? entry : { ...entry, ...name }, referenced: [file] };
}

async function loadIncluded(file: string, origin: Origin, context: LoadContext): Promise<FleetAgents> {
  const fail = (faults: DefinitionFault[]): FleetAgents => ({ entries: [], faults, referenced: [file] });
  const repeated = checkRepeatedFile(file, origin, "include", context);
  if (repeated) return { ...fail([repeated]), referenced: [] };
  const content = await readDefinition(file);
  if (!content.ok) return fail(content.faults);
  const parsed = parseAgentText(file, content.text);
  if ("ok" in parsed) return fail(parsed.faults);
  if (!isFleet(parsed.value))
    return fail([
      createKeyFault(
        origin,
        "include",
        `${file} is not a fleet file`,
        "List an agent's file under `agents`, as `path: FILE`.",
      ),
    ]);
  const loaded = await loadFleetFile(file, parsed, context);
  return { ...loaded, referenced: [file, ...loaded.referenced] };
}

/**
 * Each file may be loaded only once: a fleet that includes itself would never finish loading, and a repeated file
 * duplicates every agent.
 */
function checkRepeatedFile(
  file: string,
  origin: Origin,
  key: string,
  { ancestors, loadedFiles }: LoadContext,
): DefinitionFault | null {
  const realPath = toRealPath(file);
  if (!loadedFiles.has(realPath)) {
    loadedFiles.add(realPath);
    return null;
  }
  const first = ancestors.findIndex((ancestor) => toRealPath(ancestor) === realPath);
  const message =
    first < 0
      ? `${file} is listed twice`
      : `the fleet file includes itself: ${[...ancestors.slice(first), file].join(" -> ")}`;
  const next = first < 0 ? "Remove one of its two entries." : "Remove this entry.";
  return { ...createKeyFault(origin, key, message, next), code: "DROVER-AGT-008" };
}

/** The real path, so that a file has one identity however it is reached. */
function toRealPath(file: string): string {
  try {
    return realpathSync(file);
  } catch (error) {
    // Reading the file will report the error.
    if (error instanceof Error && "code" in error) return file;
    throw error;
  }
}

/** Skips defaults that have no effect in an agent of this type, instead of reporting them as faults. */
function applyDefaults(
  defaults: Record<string, unknown>,
  fields: Record<string, unknown>,
  changes: Record<string, unknown>,
): Record<string, unknown> {
  const merged = mergeKeys(fields, changes);
  const hasCommand = merged["command"] !== undefined && merged["command"] !== null;
  const type = merged["type"] ?? (hasCommand ? "procedural" : "autonomous");
  const executor = merged["executor"] ?? (type === "procedural" ? undefined : defaults["executor"]);
  const ignored = new Set([...findIgnoredKeys({ type, executor }), ...(type === "procedural" ? ["executor"] : [])]);
  return mergeKeys(Object.fromEntries(Object.entries(defaults).filter(([key]) => !ignored.has(key))), merged);
}

/** The origin of a part of the file. A key inherited from `defaults` has the line of that section. */
function selectOrigin(
  { file, findLine, inexact = [] }: Origin,
  prefix: readonly PropertyKey[],
  isDefault: (key: PropertyKey) => boolean = () => false,
): Origin {
  const isInPart = (path: readonly PropertyKey[]): boolean => prefix.every((step, index) => path[index] === step);
  return {
    file,
    findLine:
      findLine &&
      ((path) =>
        path[0] !== undefined && isDefault(path[0]) ? findLine(["defaults", ...path]) : findLine([...prefix, ...path])),
    inexact: inexact
      .filter(({ path }) => isInPart(path))
      .map((number) => ({ ...number, path: number.path.slice(prefix.length) })),
  };
}

function createKeyFault({ file, findLine }: Origin, path: string, message: string, next: string): DefinitionFault {
  return { code: "DROVER-AGT-004", file, line: findLine?.([path]) ?? null, path, message, next };
}
