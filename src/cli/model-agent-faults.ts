import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Origin } from "../define/check-shape.ts";
import type { LoadedProfile } from "../define/profiles.ts";
import { parseYaml } from "../define/structured-text.ts";
import { providerNames } from "../llm/providers.ts";
import type { Agent } from "../model/agent.ts";
import type { DefinitionFault } from "../model/definition-fault.ts";
import { suggest } from "../model/suggest.ts";

/**
 * Finds faults in the provider and script of an agent for the executor `model`. Agents of other executors are not checked,
 * because only their executor knows which providers it supports.
 */
export async function findModelAgentFaults(agent: Agent, origin: Origin): Promise<DefinitionFault[]> {
  const { type, executor = "model", provider, script } = agent;
  const faults = findPresetFaults(agent, origin);
  if (type !== "autonomous" || executor !== "model") return faults;
  return [...faults, ...(await findProviderFaults({ provider, script }, origin))];
}

/** Finds a system prompt preset of Claude Code, which only the executor `claude-sdk` supports. */
function findPresetFaults({ system_prompt, executor }: Agent, { file, findLine }: Origin): DefinitionFault[] {
  if (typeof system_prompt !== "object" || executor === "claude-sdk") return [];
  return [
    {
      code: "DROVER-AGT-004",
      file,
      line: findLine?.(["system_prompt"]) ?? null,
      path: "system_prompt",
      message: `the executor ${executor ?? "model"} does not support the system prompt preset of Claude Code`,
      next: "Write the system prompt as text, or set executor: claude-sdk.",
    },
  ];
}

/** Finds faults in the provider and script of a profile for the executor `model`. */
export async function findModelProfileFaults({ profile, file, directory }: LoadedProfile): Promise<DefinitionFault[]> {
  const { type, command, module, config } = profile;
  if (type !== "model" || command !== undefined || module !== undefined) return [];
  const readSetting = (key: string): string | undefined => (typeof config[key] === "string" ? config[key] : undefined);
  const script = readSetting("script");
  // YAML includes JSON. The file has already been parsed once, so it is valid.
  const yaml = parseYaml(readFileSync(file, "utf8"));
  return findProviderFaults(
    { provider: readSetting("provider"), script: script && resolve(directory, script) },
    { file, findLine: yaml.ok ? (path) => yaml.findLine(["config", ...path]) : null },
  );
}

interface ModelSettings {
  provider: string | undefined;
  /** An absolute path. */
  script: string | undefined;
}

async function findProviderFaults(
  { provider, script }: ModelSettings,
  { file, findLine }: Origin,
): Promise<DefinitionFault[]> {
  const faults: DefinitionFault[] = [];
  // Only the runner knows the value of a variable.
  if (provider !== undefined && !provider.includes("${") && !providerNames.includes(provider)) {
    const suggestion = suggest(provider, providerNames);
    faults.push({
      code: "DROVER-LLM-001",
      file,
      line: findLine?.(["provider"]) ?? null,
      path: "provider",
      message: `unknown provider ${provider}.${suggestion ? ` Did you mean ${suggestion}?` : ""}`,
      next: `Use one of ${providerNames.join(", ")}, or set the executor that supports it.`,
    });
  }
  if (script === undefined) return faults;
  const { checkScript } = await import("../llm/scripted.ts");
  const checked = await checkScript(script);
  if (checked.ok) return faults;
  // A missing script is reported in the file that names it.
  const scriptFaults = checked.faults.map((fault) =>
    fault.line === null
      ? { ...fault, file, line: findLine?.(["script"]) ?? null, path: "script", message: `${fault.message}: ${script}` }
      : fault,
  );
  return [...faults, ...scriptFaults];
}
