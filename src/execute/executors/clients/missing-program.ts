import { lookForClient } from "./binary.ts";
import { type ClientName, isClientName, programs } from "./programs.ts";

/** What an executor of this type needs and this machine has not got; null where there is all it takes. */
export function missingProgram(
  type: string,
  config: Record<string, unknown>,
  env: Readonly<Record<string, string | undefined>>,
): { message: string; next: string } | null {
  if (isClientName(type)) return missing(type, config, env);
  if (type !== "code-review") return null;
  const { engine } = config;
  if (isClientName(engine)) return missing(engine, config, env);
  // a run says which it wants: one that is there makes the profile worth offering
  const { bin: _bin, ...rest } = config;
  const lacks = engineNames.map((name) => missing(name, rest, env));
  if (lacks.includes(null)) return null;
  return {
    message: `it needs one of ${engineNames.join(", ")}, and none was found`,
    next: `Install one, or say where it is: ${engineNames.map((name) => programs[name].binVariable).join(", ")}.`,
  };
}

const engineNames = ["claude", "codex", "gemini"] as const;

function missing(name: ClientName, config: Record<string, unknown>, env: Parameters<typeof missingProgram>[2]) {
  const found = lookForClient(programs[name], config, env);
  return found.ok ? null : { message: found.message, next: found.next };
}
