import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { findPackageDirectory } from "../define/package-directory.ts";
import { isTrusted } from "../define/trust.ts";
import type { Local } from "../local.ts";
import { type CommandInput, text } from "./options.ts";

/** The configured directory of agent files, or else `agents` next to drover.yaml or in the working directory, if trusted. */
export function findAgentsDirectory(input: CommandInput, local: Local): string | null {
  const given = text(input.options, "agents") ?? local.config.agents;
  if (given) return given;
  const found = defaultAgentsDirectory(input, local);
  return found !== null && isTrusted(found, input.env) ? found : null;
}

/** The `agents` directory at the default location, trusted or not. null if there is none. */
export function defaultAgentsDirectory(
  { cwd }: Pick<CommandInput, "cwd">,
  { places }: Pick<Local, "places">,
): string | null {
  const beside = join(places.configFile ? dirname(places.configFile) : cwd, "agents");
  return existsSync(beside) && beside !== join(findPackageDirectory("examples") ?? "", "agents") ? beside : null;
}
