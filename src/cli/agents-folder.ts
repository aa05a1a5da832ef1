import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { findPackageFolder } from "../define/package-folder.ts";
import type { Local } from "../local.ts";
import { type CommandInput, text } from "./options.ts";

/** The folder of agent files that was named, else `agents` beside drover.yaml or in the working directory. */
export function agentsFolder(input: CommandInput, { places, config }: Local): string | null {
  const given = text(input.options, "agents") ?? config.agents;
  if (given) return given;
  const beside = join(places.configFile ? dirname(places.configFile) : input.cwd, "agents");
  return existsSync(beside) && beside !== join(findPackageFolder("examples") ?? "", "agents") ? beside : null;
}
