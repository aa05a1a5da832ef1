import { existsSync } from "node:fs";
import { basename, extname, join, resolve } from "node:path";
import { openSchemaChecker } from "./define/json-schema/checker.ts";
import { findPackageFolder } from "./define/package-folder.ts";
import { findProfiles, type LoadedProfile, loadProfile, type ProfileHost } from "./define/profiles.ts";
import { watchAgents } from "./define/watch-agents.ts";
import { loadAgents } from "./define/agents-folder.ts";
import { missingProgram } from "./execute/executors/clients/missing-program.ts";
import { type DefinitionFault, describeFault } from "./model/definition-fault.ts";
import { RequestError } from "./model/errors.ts";
import { splitWords } from "./process/command-line.ts";
import { findExecutable } from "./process/lookup.ts";
import { builtInExecutors, type Runner, type RunnerProfile } from "./runner.ts";

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
  env: Readonly<Record<string, string | undefined>>;
  onNotice: (message: string) => void;
}

/** The `profiles/` folder of the working directory, then the ones that come with Drover. */
export function profileFolders(cwd: string, withExamples: boolean): string[] {
  const ours = [findPackageFolder("bundled"), withExamples ? findPackageFolder("examples") : null];
  return [cwd, ...ours].flatMap((folder) =>
    folder && existsSync(join(folder, "profiles")) ? [join(folder, "profiles")] : [],
  );
}

export async function openProfiles(choice: ProfileChoice): Promise<OpenProfiles> {
  const schemas = openSchemaChecker();
  const { loaded, absent } =
    choice.wanted === null
      ? everyProfile(choice)
      : { loaded: choice.wanted.map((name) => namedProfile(name, choice)), absent: [] };
  const profiles: RunnerProfile[] = [];
  for (const profile of loaded) {
    const found = profile.agentsDirectory
      ? await loadAgents(profile.agentsDirectory, schemas)
      : { agents: [], faults: [] };
    tell(found.faults, choice.onNotice);
    profiles.push({ loaded: profile, agents: found.agents.map(({ agent }) => agent) });
  }
  const ended = new AbortController();
  const watches: { stop(): Promise<void> }[] = [];
  return {
    profiles,
    absent,
    follow(runner) {
      for (const { loaded: profile, agents } of profiles) {
        if (!profile.agentsDirectory) continue;
        let known = JSON.stringify(agents);
        const onChange: Parameters<typeof watchAgents>[2] = async (now) => {
          const changed = now.agents.map(({ agent }) => agent);
          if (JSON.stringify(changed) === known) return;
          known = JSON.stringify(changed);
          tell(now.faults, choice.onNotice);
          await runner.replaceAgents(profile.name, changed);
        };
        watches.push(watchAgents(profile.agentsDirectory, schemas, onChange, ended.signal));
      }
    },
    async stop() {
      ended.abort();
      await Promise.all(watches.map((watch) => watch.stop()));
      await schemas.stop();
    },
  };
}

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
    lacks: (type, config) => missingProgram(type, config, env),
    hasCommand(command, directory) {
      const program = splitWords(command)?.[0] ?? command;
      return [program, resolve(directory, program)].some(
        (name) => "found" in findExecutable(name, env["PATH"], directory),
      );
    },
  };
}

function tell(faults: readonly DefinitionFault[], onNotice: (message: string) => void): void {
  for (const fault of faults) onNotice(`${describeFault(fault)} [${fault.code}] ${fault.next}`);
}
