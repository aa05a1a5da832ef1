import { locateClient } from "./locate-client.ts";
import { type ClientName, isClientName, programs } from "./programs.ts";
import type { Environment } from "../../../model/environment.ts";

/** Describes the program that an executor of this type needs and this machine lacks; null if none is missing. */
export function findMissingProgram(
  type: string,
  config: Record<string, unknown>,
  env: Environment,
): { message: string; next: string } | null {
  if (isClientName(type)) return findMissingClient(type, config, env);
  if (type !== "code-review") return null;
  const { engine } = config;
  if (isClientName(engine)) return findMissingClient(engine, config, env);
  // Each run chooses its engine, so one installed engine is enough to offer the profile.
  const { bin: _bin, ...rest } = config;
  const missing = engineNames.map((name) => findMissingClient(name, rest, env));
  if (missing.includes(null)) return null;
  return {
    message: `it needs one of ${engineNames.join(", ")}, but none is installed`,
    next: `Install one of them, or set its path in ${engineNames.map((name) => programs[name].binVariable).join(" or ")}.`,
  };
}

const engineNames = ["claude", "codex", "gemini"] as const;

function findMissingClient(
  name: ClientName,
  config: Record<string, unknown>,
  env: Parameters<typeof findMissingProgram>[2],
) {
  const client = locateClient(programs[name], config, env);
  return client.ok ? null : { message: client.message, next: client.next };
}
