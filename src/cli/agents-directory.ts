import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { findPackageDirectory } from "../define/package-directory.ts";
import { isEntryTrusted } from "../define/trust.ts";
import type { Project } from "../local.ts";
import { type CommandInput, readText } from "./options.ts";

/**
 * Finds the configured directory of agent files or, if that is not set, a trusted `agents` directory next to drover.yaml
 * or in the working directory.
 */
export function findAgentsDirectory(input: CommandInput, project: Project): string | null {
  const configured = readText(input.options, "agents") ?? project.config.agents;
  if (configured) return configured;
  const directory = findDefaultAgentsDirectory(input, project);
  return directory !== null && isEntryTrusted(directory, input.env) ? directory : null;
}

/** Finds the `agents` directory at the default location, trusted or not. Returns null if it does not exist. */
export function findDefaultAgentsDirectory(
  { cwd }: Pick<CommandInput, "cwd">,
  { locations }: Pick<Project, "locations">,
): string | null {
  const directory = join(locations.configFile ? dirname(locations.configFile) : cwd, "agents");
  return existsSync(directory) && directory !== join(findPackageDirectory("examples") ?? "", "agents")
    ? directory
    : null;
}
