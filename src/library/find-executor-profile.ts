import { join } from "node:path";
import { findPackageDirectory } from "../define/package-directory.ts";
import { type LoadedProfile, loadProfile } from "../define/profiles.ts";
import type { Agent } from "../model/agent.ts";
import type { Config } from "../model/config.ts";
import { describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { listVariables } from "../model/expand-agent.ts";
import { profileSchema } from "../model/profile.ts";
import type { Environment } from "../model/environment.ts";
import { builtInExecutors, type RunnerProfile } from "../runner.ts";
import { findProfileDirectories } from "../compose/open-profiles.ts";

interface ProfileContext {
  cwd: string;
  config: Config;
  env: Environment;
}

/**
 * Returns the profile that runs the agent: the project's profile with the name of the agent's executor, or one without
 * settings. The caller is the operator, so the agent may use any variable and work in any directory.
 */
export function findExecutorProfile(agent: Agent, { cwd, config, env }: ProfileContext): RunnerProfile {
  const executor = agent.executor ?? "procedural";
  const host = { builtIn: builtInExecutors, hasCommand: () => true };
  const result = loadProfile(executor, findProfileDirectories(cwd, config, false, env), host);
  if (!result.ok && (result.faults[0]?.code !== "DROVER-PRF-001" || !isBuiltIn(executor))) {
    const [fault] = result.faults;
    throw new RequestError({
      code: fault!.code,
      field: "agent.executor",
      message: describeFault(fault!),
      next: fault!.next,
    });
  }
  const loaded = result.ok && !isBundled(result.profile) ? result.profile : createEmptyProfile(executor, cwd);
  return {
    agents: [agent],
    loaded: {
      ...loaded,
      agentsDirectory: null,
      profile: {
        ...loaded.profile,
        isolation: loaded.profile.isolation ?? config.isolation,
        allow_env: listVariables(agent),
        project_roots: ["/"],
      },
    },
  };
}

/** Whether this profile ships with Drover for a built-in executor. Such profiles have no settings. */
function isBundled({ file, profile: { command, module } }: LoadedProfile): boolean {
  const bundled = findPackageDirectory("bundled");
  return (
    bundled !== null && file.startsWith(join(bundled, "profiles")) && command === undefined && module === undefined
  );
}

function isBuiltIn(executor: string): boolean {
  return builtInExecutors.some((name) => name === executor);
}

function createEmptyProfile(type: string, directory: string): LoadedProfile {
  return {
    name: type,
    file: type,
    directory,
    profile: profileSchema.parse({ type }),
    agentsDirectory: null,
    module: null,
  };
}
