import { existsSync, realpathSync } from "node:fs";
import { basename, extname, join, resolve } from "node:path";
import { openSchemaChecker, type SchemaChecker } from "../define/json-schema/checker.ts";
import { findPackageDirectory } from "../define/package-directory.ts";
import { isTrusted } from "../define/trust.ts";
import { findProfiles, type LoadedProfile, loadProfile, type ProfileHost } from "../define/profiles.ts";
import type { AgentGate } from "../define/agent-gate.ts";
import { watchAgents } from "../define/watch-agents.ts";
import { loadAgents, type LoadedAgents } from "../define/load-agents.ts";
import { missingProgram } from "../execute/executors/clients/missing-program.ts";
import { agentSdk } from "../llm/claude-code/sdk.ts";
import { missingPackage } from "../llm/optional-package.ts";
import type { Config } from "../model/config.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { splitWords } from "../model/split-words.ts";
import type { Environment } from "../model/environment.ts";
import { findExecutable } from "../process/lookup.ts";
import { builtInExecutors, type Runner, type RunnerProfile } from "../runner.ts";
import { isProceduralExec } from "./create-executor.ts";

/** The profiles of a runner with their agents, and what keeps those up to date while it runs. */
export interface OpenProfiles {
  profiles: RunnerProfile[];
  /** Of those that were not named: what is for a program that this machine has not got. */
  absent: readonly DefinitionFault[];
  /** Brings changed agent files to the runner until stopped. */
  follow(runner: Runner): void;
  stop(): Promise<void>;
}

export interface ProfileChoice {
  /** Names or paths; null for every profile that can be used here. */
  wanted: readonly string[] | null;
  /** Folders named `profiles`, first come first served. */
  folders: readonly string[];
  /** Of profiles that choose none. */
  isolation?: Config["isolation"];
  env: Environment;
  onNotice: (message: string) => void;
  /** Holds definitions of a folder that come while the runner serves; without it all are used at once. */
  gate?: (folder: string) => AgentGate | null;
  /** False for a folder of agents that is to be left out. */
  agentsSettled?: (folder: string) => boolean;
  /** Leaves the schemas of agents unchecked until one is used: a check of all costs more than a short run. */
  uncheckedSchemas?: boolean;
}

/**
 * The folder that drover.yaml names, else `profiles/` of the working directory where that is trusted; then those that
 * come with Drover.
 */
export function profileFolders(
  cwd: string,
  { profiles }: Pick<Config, "profiles">,
  withExamples: boolean,
  env: ProfileChoice["env"],
): string[] {
  if (profiles !== null && !existsSync(profiles))
    throw new RequestError({
      code: "DROVER-CFG-004",
      field: "profiles",
      message: `drover.yaml names ${profiles} as the folder of profiles, and there is none.`,
      next: "Create it, or correct profiles in drover.yaml: it is relative to that file.",
    });
  const ours = [findPackageDirectory("bundled"), withExamples ? findPackageDirectory("examples") : null];
  const beside = join(cwd, "profiles");
  // it was trusted where it really lies: what its profiles name is looked for there, and not beside a link to it
  const own = profiles ?? (isTrusted(beside, env) ? realpathSync.native(beside) : null);
  const folders = [own, ...ours.map((folder) => folder && join(folder, "profiles"))];
  return folders.flatMap((folder) => (folder && existsSync(folder) ? [folder] : []));
}

export async function openProfiles(choice: ProfileChoice): Promise<OpenProfiles> {
  const schemas = openSchemaChecker();
  const { loaded, absent } =
    choice.wanted === null
      ? everyProfile(choice)
      : { loaded: choice.wanted.map((name) => namedProfile(name, choice)), absent: [] };
  const profiles: RunnerProfile[] = [];
  const bringAgents = async (profile: LoadedProfile): Promise<LoadedAgents | null> => {
    const { agentsDirectory } = profile;
    if (agentsDirectory === null || choice.agentsSettled?.(agentsDirectory) === false) return null;
    const all = await loadAgents(agentsDirectory, choice.uncheckedSchemas ? unchecked : schemas);
    const gate = choice.gate?.(agentsDirectory);
    if (gate) gates.set(profile, gate);
    return gate?.admit(all) ?? all;
  };
  const found = new Map<LoadedProfile, LoadedAgents>();
  const gates = new Map<LoadedProfile, AgentGate>();
  for (const each of loaded) {
    const isolation = each.profile.isolation ?? choice.isolation;
    const profile: LoadedProfile = { ...each, profile: { ...each.profile, ...(isolation ? { isolation } : {}) } };
    const brought = await bringAgents(profile);
    if (brought) found.set(profile, brought);
    tell(brought?.faults ?? [], choice.onNotice);
    tellSchedules(brought, choice.onNotice);
    profiles.push({ loaded: profile, agents: brought?.agents.map(({ agent }) => agent) ?? [] });
  }
  const ended = new AbortController();
  const watches: { stop(): Promise<void> }[] = [];
  return {
    profiles,
    absent,
    follow(runner) {
      for (const [profile, first] of found) {
        let known = first;
        const onChange: Parameters<typeof watchAgents>[2] = async (now) => {
          const [before, after] = [known, now].map(({ agents }) => agents.map(({ agent }) => agent));
          if (JSON.stringify(now.faults) !== JSON.stringify(known.faults)) tell(now.faults, choice.onNotice);
          if (JSON.stringify(after) !== JSON.stringify(before)) tellSchedules(now, choice.onNotice);
          known = now;
          if (JSON.stringify(after) !== JSON.stringify(before)) await runner.replaceAgents(profile.name, after!);
        };
        const gate = gates.get(profile);
        const loadedBefore = first.agents;
        watches.push(watchAgents(profile.agentsDirectory!, schemas, onChange, ended.signal, { loadedBefore, gate }));
      }
    },
    async stop() {
      ended.abort();
      await Promise.all(watches.map((watch) => watch.stop()));
      await schemas.stop();
    },
  };
}

/** Two runners may bring the same agent, and both go away: its schedules are for the coordinator to keep. */
function tellSchedules(brought: LoadedAgents | null, onNotice: ProfileChoice["onNotice"]): void {
  for (const { agent, file } of brought?.agents ?? [])
    if (agent.schedules !== undefined && agent.schedules.length > 0)
      onNotice(
        `${file}: the schedules of ${agent.name} are not kept, as a runner brings it. Move the file to the coordinator's agents folder, or use: drover schedules add ${agent.name} NAME --cron "..."`,
      );
}

const unchecked: Pick<SchemaChecker, "checkSchema"> = { checkSchema: async () => ({ faults: [] }) };

/** Of the profiles that are for programs which are not here. */
export function absentNames({ absent }: Pick<OpenProfiles, "absent">): string {
  return absent.map(({ file }) => basename(file ?? "", extname(file ?? ""))).join(", ");
}

function everyProfile({ folders, env, onNotice }: ProfileChoice): {
  loaded: LoadedProfile[];
  absent: DefinitionFault[];
} {
  const { profiles, faults, absent } = findProfiles(folders, hostOf(env));
  tell(faults, onNotice);
  return { loaded: profiles, absent };
}

function namedProfile(name: string, { folders, env }: ProfileChoice): LoadedProfile {
  const result = loadProfile(name, folders, hostOf(env));
  if (result.ok) return result.profile;
  const [fault] = result.faults;
  throw new RequestError({ code: fault!.code, field: "--profile", message: describeFault(fault!), next: fault!.next });
}

function hostOf(env: ProfileChoice["env"]): ProfileHost {
  return {
    builtIn: builtInExecutors,
    missing: (type, config, directory) =>
      type === "claude-sdk" ? missingPackage(agentSdk, { directory, env }) : missingProgram(type, config, env),
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

function tell(faults: readonly DefinitionFault[], onNotice: (message: string) => void): void {
  for (const fault of faults) onNotice(`${describeFault(fault)} [${fault.code}] ${fault.next}`);
}
