import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import { openSchemaChecker, type SchemaChecker } from "../define/json-schema/checker.ts";
import { findPackageDirectory } from "../define/package-directory.ts";
import { isEntryTrusted } from "../define/trust.ts";
import { findProfiles, type LoadedProfile, loadProfile, type ProfileHost } from "../define/profiles.ts";
import type { AgentGate } from "../define/agent-gate.ts";
import { watchAgents } from "../define/watch-agents.ts";
import { loadAgents, type LoadedAgent, type LoadedAgents } from "../define/load-agents.ts";
import { findMissingProgram } from "../execute/executors/clients/find-missing-program.ts";
import { agentSdk } from "../llm/claude-code/sdk.ts";
import { describeMissingPackage } from "../llm/optional-package.ts";
import type { Config } from "../model/config.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { splitWords } from "../model/split-words.ts";
import type { Environment } from "../model/environment.ts";
import { findExecutable } from "../process/find-executable.ts";
import { builtInExecutors, type Runner, type RunnerProfile } from "../runner.ts";
import { isProceduralExec } from "./create-executor.ts";

/** The profiles of a runner with their agents. */
export interface OpenProfiles {
  profiles: RunnerProfile[];
  /** Profiles that were not requested by name and whose program is not installed here. */
  absent: readonly DefinitionFault[];
  /** Watches the agent files and passes changes to the runner, until stopped. */
  follow(runner: Runner): void;
  stop(): Promise<void>;
}

export interface ProfileChoice {
  /** Names or paths, or null for every profile that works here. */
  names: readonly string[] | null;
  /** Directories of profiles. The first one that contains a name wins. */
  directories: readonly string[];
  /** The isolation of profiles that set none. */
  isolation?: Config["isolation"];
  env: Environment;
  onNotice: (message: string) => void;
  /** Returns a gate that holds back definitions that appear while the runner serves. Without one, all are used at once. */
  gate?: (directory: string) => AgentGate | null;
  /** Returns false for a directory of agents to ignore. */
  acceptsAgents?: (directory: string) => boolean;
  /**
   * The agents directory of the coordinator that is started together with this runner. That coordinator runs the schedules
   * of these agents, so they are not reported as ignored.
   */
  coordinatorAgentsDirectory?: string | null;
  /** Checks the schemas of an agent only when it is used, because checking all of them takes longer than a short run. */
  skipSchemaChecks?: boolean;
}

/**
 * Returns the directory set in drover.yaml or else, if it is trusted, `profiles/` in the working directory, followed by
 * the directories that come with Drover.
 */
export function findProfileDirectories(
  cwd: string,
  { profiles }: Pick<Config, "profiles">,
  withExamples: boolean,
  env: ProfileChoice["env"],
): string[] {
  if (profiles !== null && !existsSync(profiles))
    throw new RequestError({
      code: "DROVER-CFG-004",
      field: "profiles",
      message: `The profiles directory ${profiles}, set in drover.yaml, does not exist.`,
      next: "Create it, or correct `profiles` in drover.yaml. The path is relative to that file.",
    });
  const packaged = [findPackageDirectory("bundled"), withExamples ? findPackageDirectory("examples") : null];
  const projectProfiles = join(cwd, "profiles");
  // Trust applies to the real path, so paths in the profiles are relative to the real path and not to a link.
  const custom = profiles ?? (isEntryTrusted(projectProfiles, env) ? realpathSync.native(projectProfiles) : null);
  const directories = [custom, ...packaged.map((directory) => directory && join(directory, "profiles"))];
  return directories.flatMap((directory) => (directory && existsSync(directory) ? [directory] : []));
}

export async function openProfiles(choice: ProfileChoice): Promise<OpenProfiles> {
  const schemas = openSchemaChecker();
  const { loaded, absent } =
    choice.names === null
      ? loadAllProfiles(choice)
      : { loaded: choice.names.map((name) => loadNamedProfile(name, choice)), absent: [] };
  const profiles: RunnerProfile[] = [];
  const loadProfileAgents = async (profile: LoadedProfile): Promise<LoadedAgents | null> => {
    const { agentsDirectory } = profile;
    if (agentsDirectory === null || choice.acceptsAgents?.(agentsDirectory) === false) return null;
    const all = await loadAgents(agentsDirectory, choice.skipSchemaChecks ? noSchemaChecks : schemas);
    const gate = choice.gate?.(agentsDirectory);
    if (gate) gates.set(profile, gate);
    return gate?.admit(all) ?? all;
  };
  const agentsByProfile = new Map<LoadedProfile, LoadedAgents>();
  const gates = new Map<LoadedProfile, AgentGate>();
  for (const original of loaded) {
    if (original.module !== null && choice.acceptsAgents?.(dirname(original.module)) === false) continue;
    const isolation = original.profile.isolation ?? choice.isolation;
    const profile: LoadedProfile = {
      ...original,
      profile: { ...original.profile, ...(isolation ? { isolation } : {}) },
    };
    const loadedAgents = await loadProfileAgents(profile);
    if (loadedAgents) agentsByProfile.set(profile, loadedAgents);
    reportFaults(loadedAgents?.faults ?? [], choice.onNotice);
    reportSchedules(profile, loadedAgents, choice);
    profiles.push({ loaded: profile, agents: loadedAgents?.agents.map(({ agent }) => agent) ?? [] });
  }
  const stopping = new AbortController();
  const watches: { stop(): Promise<void> }[] = [];
  return {
    profiles,
    absent,
    follow(runner) {
      for (const [profile, first] of agentsByProfile) {
        let current = first;
        const onChange: Parameters<typeof watchAgents>[2] = async (next) => {
          const [before, after] = [current, next].map(({ agents }) => agents.map(({ agent }) => agent));
          if (JSON.stringify(next.faults) !== JSON.stringify(current.faults))
            reportFaults(next.faults, choice.onNotice);
          if (JSON.stringify(after) !== JSON.stringify(before)) reportSchedules(profile, next, choice);
          current = next;
          if (JSON.stringify(after) !== JSON.stringify(before)) await runner.replaceAgents(profile.name, after!);
        };
        const gate = gates.get(profile);
        const loadedBefore = first.agents;
        watches.push(watchAgents(profile.agentsDirectory!, schemas, onChange, stopping.signal, { loadedBefore, gate }));
      }
    },
    async stop() {
      stopping.abort();
      await Promise.all(watches.map((watch) => watch.stop()));
      await schemas.stop();
    },
  };
}

/**
 * Reports ignored schedules. Those of an agent that a runner offers are ignored, because several runners can offer the same
 * agent, and each of them may stop at any time.
 */
function reportSchedules(
  { agentsDirectory }: LoadedProfile,
  loaded: LoadedAgents | null,
  { coordinatorAgentsDirectory, onNotice }: Pick<ProfileChoice, "coordinatorAgentsDirectory" | "onNotice">,
): void {
  if (agentsDirectory && coordinatorAgentsDirectory && isSameDirectory(agentsDirectory, coordinatorAgentsDirectory))
    return;
  for (const notice of describeIgnoredSchedules(loaded?.agents ?? [])) onNotice(notice);
}

/** Describes the schedules that nothing runs, for agents that only a runner offers. */
export function describeIgnoredSchedules(agents: readonly LoadedAgent[]): string[] {
  return agents
    .filter(({ agent: { schedules = [] } }) => schedules.length > 0)
    .map(
      ({ agent: { name }, file }) =>
        `${file}: the schedules of ${name} are ignored, because a runner offers this agent. Move the file to the coordinator's agents directory, or use: drover schedules add ${name} NAME --cron "..."`,
    );
}

export function isSameDirectory(first: string, second: string): boolean {
  return existsSync(first) && existsSync(second) && realpathSync.native(first) === realpathSync.native(second);
}

const noSchemaChecks: Pick<SchemaChecker, "checkSchema"> = { checkSchema: async () => ({ faults: [] }) };

/** Lists the names of the profiles whose program is not installed. */
export function listAbsent({ absent }: Pick<OpenProfiles, "absent">): string {
  return absent.map(({ file }) => basename(file ?? "", extname(file ?? ""))).join(", ");
}

function loadAllProfiles({ directories, env, onNotice }: ProfileChoice): {
  loaded: LoadedProfile[];
  absent: DefinitionFault[];
} {
  const { profiles, faults, absent } = findProfiles(directories, createProfileHost(env));
  reportFaults(faults, onNotice);
  return { loaded: profiles, absent };
}

function loadNamedProfile(name: string, { directories, env }: ProfileChoice): LoadedProfile {
  const result = loadProfile(name, directories, createProfileHost(env));
  if (result.ok) return result.profile;
  const [fault] = result.faults;
  throw new RequestError({ code: fault!.code, field: "--profile", message: describeFault(fault!), next: fault!.next });
}

function createProfileHost(env: ProfileChoice["env"]): ProfileHost {
  return {
    builtIn: builtInExecutors,
    missing: (type, config, directory) =>
      type === "claude-sdk"
        ? describeMissingPackage(agentSdk, { directory, env })
        : findMissingProgram(type, config, env),
    hasCommand(command, directory) {
      if (isProceduralExec(command)) return true;
      const split = splitWords(command);
      const program = (split.ok && split.words[0]) || command;
      return [program, resolve(directory, program)].some(
        (name) => "found" in findExecutable(name, env["PATH"], directory),
      );
    },
  };
}

function reportFaults(faults: readonly DefinitionFault[], onNotice: (message: string) => void): void {
  for (const fault of faults) onNotice(`${describeFault(fault)} [${fault.code}] ${fault.next}`);
}
