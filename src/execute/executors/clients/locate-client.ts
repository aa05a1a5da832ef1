import { findExecutable } from "../../../process/find-executable.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { ClientDefinition } from "./definition.ts";
import type { Environment } from "../../../model/environment.ts";

type Program = Pick<ClientDefinition, "name" | "program" | "binVariable" | "install">;

/**
 * Returns the client's path. If the client is missing, fails the run with a message that explains how to install it.
 */
export function requireClient(definition: Program, config: Record<string, unknown>, env: Environment): string {
  const client = locateClient(definition, config, env);
  if (client.ok) return client.path;
  throw new RunFailure("dependency_missing", `${client.message}. ${client.next}`);
}

/** Tries `bin` in the profile, then the runner's variable, then the program's name on PATH. */
export function locateClient(
  { name, program, binVariable, install }: Program,
  config: Record<string, unknown>,
  env: Environment,
): { ok: true; path: string } | { ok: false; message: string; next: string } {
  const { path, source } = findConfiguredProgram(program, binVariable, config, env);
  // A relative path comes from the operator and is relative to the runner's working directory.
  const lookup = findExecutable(path, env["PATH"], process.cwd());
  if ("found" in lookup) return { ok: true, path: lookup.found };
  const problem =
    lookup.missing === "nowhere" ? "was not found" : `cannot be executed${lookup.path ? ` (${lookup.path})` : ""}`;
  return {
    ok: false,
    message: `${name} is missing on this runner: ${path} (${source}) ${problem}`,
    next: `${install}, or set its path in ${binVariable} or in \`bin\` of the profile's config.`,
  };
}

function findConfiguredProgram(
  program: string,
  binVariable: string,
  config: Record<string, unknown>,
  env: Environment,
) {
  if (typeof config["bin"] === "string" && config["bin"] !== "")
    return { path: config["bin"], source: "the profile's bin" };
  const overridePath = env[binVariable];
  if (overridePath !== undefined && overridePath !== "") return { path: overridePath, source: binVariable };
  return { path: program, source: "on PATH" };
}
