import { readdir, readFile, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import type { Agent } from "../model/agent.ts";
import type { DefinitionFault } from "../model/definition-fault.ts";
import { agentFileEndings, parseAgentFile, type ParsedAgent, schemaFault } from "./agent-file.ts";
import { errorCode } from "./error-code.ts";
import type { SchemaChecker } from "./json-schema/checker.ts";

export interface LoadedAgents {
  agents: LoadedAgent[];
  faults: DefinitionFault[];
}

export interface LoadedAgent {
  agent: Agent;
  file: string;
}

const maxFileBytes = 1024 * 1024;

/** Every agent of a folder. A file at fault is named and the others still load. */
export async function loadAgents(folder: string, schemas: SchemaChecker): Promise<LoadedAgents> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    return { agents: [], faults: [unreadable(folder, error)] };
  }
  const files = names
    .filter(isAgentFile)
    .sort()
    .map((name) => join(folder, name));
  const parsed = await Promise.all(files.map(async (file) => ({ file, parsed: await loadAgentFile(file, schemas) })));
  const agents = parsed.flatMap(({ file, parsed: one }) => (one.ok ? [{ file, agent: one.agent }] : []));
  const twins = findTwins(agents);
  return {
    // of two with one name neither loads: which one is meant, only their author knows
    agents: agents.filter(({ agent }) => !twins.has(agent.name)),
    faults: [...parsed.flatMap(({ parsed: one }) => (one.ok ? [] : one.faults)), ...[...twins].map(twinFault)],
  };
}

/** Hidden files are editors' leftovers, and a README is for people. */
export function isAgentFile(name: string): boolean {
  return (
    !name.startsWith(".") &&
    name.toLowerCase() !== "readme.md" &&
    agentFileEndings.includes(extname(name).toLowerCase())
  );
}

export async function loadAgentFile(file: string, schemas: SchemaChecker): Promise<ParsedAgent> {
  let text: string;
  try {
    const { size, mode } = await stat(file);
    // reading a pipe would wait for ever
    if ((mode & 0o170000) !== 0o100000)
      return { ok: false, faults: [fault(file, "is not a regular file", "Move it out of the folder.")] };
    if (size > maxFileBytes)
      return { ok: false, faults: [fault(file, `is larger than ${maxFileBytes / 1024} KB`, "Make it smaller.")] };
    text = new TextDecoder("utf-8", { fatal: true }).decode(await readFile(file));
  } catch (error) {
    if (error instanceof TypeError)
      return { ok: false, faults: [fault(file, "is not UTF-8 text", "Save it as UTF-8.")] };
    return { ok: false, faults: [unreadable(file, error)] };
  }
  const parsed = parseAgentFile(file, text);
  return parsed.ok ? checkSchemas(parsed, schemas) : parsed;
}

/** Are its schemas ones? A mistake in them should be told here, not at the first run. */
export async function checkSchemas(
  parsed: Extract<ParsedAgent, { ok: true }>,
  schemas: SchemaChecker,
): Promise<ParsedAgent> {
  const keys = (["parameters_schema", "output_schema"] as const).filter((key) => parsed.agent[key] !== undefined);
  const faults = await Promise.all(
    keys.map(async (key) =>
      (await schemas.checkSchema(parsed.agent[key]!)).faults.map((found) => schemaFault(key, found, parsed.origin)),
    ),
  );
  return faults.flat().length > 0 ? { ok: false, faults: faults.flat() } : parsed;
}

function findTwins(agents: readonly LoadedAgent[]): Map<string, string[]> {
  const files = new Map<string, string[]>();
  for (const { agent, file } of agents) files.set(agent.name, [...(files.get(agent.name) ?? []), file]);
  return new Map([...files].filter(([, same]) => same.length > 1));
}

function twinFault([name, files]: [string, string[]]): DefinitionFault {
  return {
    code: "DROVER-AGT-005",
    file: files[0]!,
    line: null,
    path: "name",
    message: `the agent ${name} is defined more than once: ${files.join(", ")}; none of them is loaded`,
    next: "Rename or remove all but one.",
  };
}

function unreadable(file: string, error: unknown): DefinitionFault {
  const next = errorCode(error) === "ENOENT" ? "Create it, or correct the path." : "Make it readable for this user.";
  return fault(file, `cannot be read (${errorCode(error)})`, next);
}

function fault(file: string, message: string, next: string): DefinitionFault {
  return { code: "DROVER-AGT-001", file, line: null, path: "", message, next };
}
