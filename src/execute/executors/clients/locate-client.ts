import { findExecutable } from "../../../process/find-executable.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { ClientDefinition } from "./definition.ts";
import type { Environment } from "../../../model/environment.ts";

type Program = Pick<ClientDefinition, "name" | "program" | "binVariable" | "install">;
/** Returns the client's path. If it is missing, fails the run with a message that says what to install. */
export function requireClient(definition: Program, config: Record<string, unknown>, env: Environment): string {
  const found = locateClient(definition, config, env);
  if (found.ok) return found.path;
  throw new RunFailure("dependency_missing", `${found.message}. ${found.next}`);
}

/** Tries `bin` in the profile, then the runner's variable, then the program's name on PATH. */
export function locateClient(
  { name, program, binVariable, install }: Program,
  config: Record<string, unknown>,
  env: Environment,
): { ok: true; path: string } | { ok: false; message: string; next: string } {
  const { wanted, from } = wantedProgram(program, binVariable, config, env);
  // a relative path comes from the operator and is relative to where the runner was started
  const seen = findExecutable(wanted, env["PATH"], process.cwd());
  if ("found" in seen) return { ok: true, path: seen.found };
  const what = seen.missing === "nowhere" ? "was not found" : `cannot be executed${seen.path ? ` (${seen.path})` : ""}`;
  return {
    ok: false,
    message: `${name} is missing on this runner: ${wanted} (${from}) ${what}`,
    next: `${install}, or set its path in ${binVariable} or in \`bin\` of the profile's config.`,
  };
}

function wantedProgram(program: string, binVariable: string, config: Record<string, unknown>, env: Environment) {
  if (typeof config["bin"] === "string" && config["bin"] !== "")
    return { wanted: config["bin"], from: "the profile's bin" };
  const named = env[binVariable];
  if (named !== undefined && named !== "") return { wanted: named, from: binVariable };
  return { wanted: program, from: "on PATH" };
}
