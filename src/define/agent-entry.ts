import { dirname, isAbsolute, resolve } from "node:path";
import type { Agent } from "../model/agent.ts";
import type { DefinitionFault } from "../model/definition-fault.ts";
import { type AgentText, checkAgent } from "./agent-file.ts";
import { checkSchemas } from "./check-schemas.ts";
import type { Origin } from "./check-shape.ts";
import type { SchemaChecker } from "./json-schema/checker.ts";
import { isRecord } from "./merge-keys.ts";

export interface AgentChecks extends Pick<SchemaChecker, "checkSchema"> {
  /** Further checks of an agent that is already valid by itself. */
  checkAgent?(agent: Agent, origin: Origin): Promise<DefinitionFault[]>;
}

/** An agent defined in a file, or its faults. A faulty entry has a `name` if the file contains one. */
export type AgentEntry = { file: string } & (
  | { agent: Agent; line: number | null; faults?: undefined }
  | { agent?: undefined; name?: string; faults: DefinitionFault[] }
);

/** `complete` turns the keys found in the text into the agent's full set of keys, e.g. by adding defaults. */
export async function checkAgentEntry(
  file: string,
  { value, origin, addTextFaults }: AgentText,
  checks: AgentChecks,
  complete: (keys: Record<string, unknown>) => Record<string, unknown> = (keys) => keys,
): Promise<AgentEntry> {
  const fields = isRecord(value) ? complete(resolvePaths(value, dirname(file))) : value;
  const checked = await checkSchemas(addTextFaults(checkAgent(fields, origin)), checks);
  if (!checked.ok) return { file, faults: checked.faults };
  const faults = (await checks.checkAgent?.(checked.agent, origin)) ?? [];
  if (faults.length > 0) return { file, faults };
  return { file, agent: checked.agent, line: origin.findLine?.(["name"]) ?? null };
}

/** Paths in a definition are relative to the file that contains them. */
export function resolvePaths(fields: Record<string, unknown>, directory: string): Record<string, unknown> {
  const resolved = ["script", "working_directory"].flatMap((key) => {
    const path = fields[key];
    return typeof path === "string" && path !== "" && !isAbsolute(path) ? [[key, resolve(directory, path)]] : [];
  });
  return resolved.length === 0 ? fields : { ...fields, ...Object.fromEntries(resolved) };
}
