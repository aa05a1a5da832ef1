import { locateClient } from "./locate-client.ts";
import { type ClientName, isClientName, programs } from "./programs.ts";
import type { Environment } from "../../../model/environment.ts";

/** Returns what an executor of this type needs and this machine lacks; null if nothing is missing. */
export function missingProgram(
  type: string,
  config: Record<string, unknown>,
  env: Environment,
): { message: string; next: string } | null {
  if (isClientName(type)) return missing(type, config, env);
  if (type !== "code-review") return null;
  const { engine } = config;
  if (isClientName(engine)) return missing(engine, config, env);
  // each run chooses its engine, so one installed engine is enough to offer the profile
  const { bin: _bin, ...rest } = config;
  const lacks = engineNames.map((name) => missing(name, rest, env));
  if (lacks.includes(null)) return null;
  return {
    message: `it needs one of ${engineNames.join(", ")}, and none was found`,
    next: `Install one, or set its path in ${engineNames.map((name) => programs[name].binVariable).join(" or ")}.`,
  };
}

const engineNames = ["claude", "codex", "gemini"] as const;

function missing(name: ClientName, config: Record<string, unknown>, env: Parameters<typeof missingProgram>[2]) {
  const found = locateClient(programs[name], config, env);
  return found.ok ? null : { message: found.message, next: found.next };
}
