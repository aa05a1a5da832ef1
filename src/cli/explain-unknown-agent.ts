import { existsSync } from "node:fs";
import { join } from "node:path";
import { listHeldAgents } from "../define/agent-gate.ts";
import { findProject } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import type { CommandInput } from "./options.ts";
import { quoteForShell } from "./shell-quote.ts";

/**
 * Gives the error about an unknown agent a better next step if a definition of that name is held, or if the current
 * directory has no profiles. Adds the address of the coordinator to the message. `coordinator` is null if this process
 * offers the agents itself. Returns other errors unchanged.
 */
export async function explainUnknownAgent(
  error: unknown,
  name: string,
  { env, cwd }: CommandInput,
  coordinator: string | null,
): Promise<unknown> {
  if (!(error instanceof RequestError) || error.code !== "DROVER-SUB-001") return error;
  const { locations, config } = await findProject(env, cwd);
  const held = listHeldAgents(locations.stateDirectory).find((definition) => definition.name === name);
  const isEmpty = coordinator === null && config.profiles === null && !existsSync(join(cwd, "profiles"));
  const hint = held
    ? `A definition of ${name} is held (${held.file}). Review it, then accept it with: drover agents accept ${quoteForShell(name)}`
    : isEmpty
      ? `${cwd} has no profiles/. Run the command in the directory of your project, or list the agents: drover agents list`
      : null;
  if (hint === null && coordinator === null) return error;
  const { code, field, cause, next } = error;
  const message =
    coordinator === null ? error.message : `${error.message} The response came from the coordinator at ${coordinator}.`;
  return new RequestError({
    code,
    message,
    cause,
    next: hint ?? next ?? "List the agents: drover agents list",
    ...(field === undefined ? {} : { field }),
  });
}
