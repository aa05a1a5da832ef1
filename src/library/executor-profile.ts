import { join } from "node:path";
import { findPackageDirectory } from "../define/package-directory.ts";
import { type LoadedProfile, loadProfile } from "../define/profiles.ts";
import type { Agent } from "../model/agent.ts";
import type { Config } from "../model/config.ts";
import { describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { variablesIn } from "../model/expand-agent.ts";
import { profileSchema } from "../model/profile.ts";
import { builtInExecutors, type RunnerProfile } from "../runner.ts";
import { profileFolders } from "../compose/open-profiles.ts";

interface Place {
  cwd: string;
  config: Config;
  env: Readonly<Record<string, string | undefined>>;
}

/**
 * The profile that carries the agent out: the project's of its executor's name, else one without any settings. The
 * caller is the operator, so that the agent may name any variable and work in any folder.
 */
export function executorProfile(agent: Agent, { cwd, config, env }: Place): RunnerProfile {
  const executor = agent.executor ?? "procedural";
  const host = { builtIn: builtInExecutors, hasCommand: () => true };
  const found = loadProfile(executor, profileFolders(cwd, config, false, env), host);
  if (!found.ok && (found.faults[0]?.code !== "DROVER-PRF-001" || !isBuiltIn(executor))) {
    const [fault] = found.faults;
    throw new RequestError({
      code: fault!.code,
      field: "agent.executor",
      message: describeFault(fault!),
      next: fault!.next,
    });
  }
  const loaded = found.ok && !isPlain(found.profile) ? found.profile : bareProfile(executor, cwd);
  return {
    agents: [agent],
    loaded: {
      ...loaded,
      agentsDirectory: null,
      profile: {
        ...loaded.profile,
        isolation: loaded.profile.isolation ?? config.isolation,
        allow_env: variablesIn(agent),
        project_roots: ["/"],
      },
    },
  };
}

/** One of those that come with Drover: a built-in executor without settings, which is then looked for in the project. */
function isPlain({ file, profile: { command, module } }: LoadedProfile): boolean {
  const bundled = findPackageDirectory("bundled");
  return (
    bundled !== null && file.startsWith(join(bundled, "profiles")) && command === undefined && module === undefined
  );
}

function isBuiltIn(executor: string): boolean {
  return builtInExecutors.some((name) => name === executor);
}

function bareProfile(type: string, directory: string): LoadedProfile {
  return {
    name: type,
    file: type,
    directory,
    profile: profileSchema.parse({ type }),
    agentsDirectory: null,
    module: null,
  };
}
