import { createHttpPort } from "../wire/http-port.ts";
import type { Target } from "../wire/http-transport.ts";
import { findProject } from "../local.ts";
import { HostError, RequestError } from "../model/errors.ts";
import { PortError } from "../model/port-error.ts";
import { recordDirectory, runnerTokenFile } from "../model/state-layout.ts";
import { listAbsent, openProfiles, findProfileDirectories } from "../compose/open-profiles.ts";
import { type Runner, type RunnerProfile, startRunner } from "../runner.ts";
import type { RunProgress } from "../execute/supervise/supervise-options.ts";
import { findAddressForCommands } from "./address-for-commands.ts";
import { acceptOption, createGateFactory } from "./agents-accept.ts";
import { readStoredToken } from "./announcement.ts";
import { connect } from "./connect.ts";
import { enrolRunner } from "./enrol-runner.ts";
import { envFileOption, withEnvFile } from "./env-file.ts";
import { tryWrite, write } from "./io.ts";
import { type CommandInput, type CommandSpec, readList, readText, usageError } from "./options.ts";
import { searchesForProfiles, resolveTrust } from "./resolve-trust.ts";
import { formatDuration } from "./table.ts";
import { waitForShutdown } from "./wait-for-shutdown.ts";
import { findDroverCommand } from "./drover-command.ts";

export const runnerCommand: CommandSpec = {
  name: "runner",
  summary: "claim and execute runs",
  placeholders: "-x PROFILE",
  arity: [0, 0],
  examples: [
    ["drover runner -x echo", "one profile, for the coordinator of this directory"],
    [
      "DROVER_API_URL=https://drover.example DROVER_API_KEY=drv_... drover runner -x ./profiles/build.json --name b1",
      "for a remote coordinator",
    ],
    ["drover runner -x claude --env-file .env", "read the address, token and other variables from a file"],
  ],
  options: {
    profile: {
      placeholder: "P",
      short: "x",
      repeat: true,
      description: "offer this profile, by name or path (repeatable; each profile registers separately)",
    },
    name: { placeholder: "N", description: "a name to distinguish runners on the same host and in the same directory" },
    slots: { placeholder: "N", description: "how many runs at a time (default: from the profile)" },
    "project-dir": {
      placeholder: "DIR",
      description: "working directory for runs that name none (default: the current one)",
    },
    examples: { description: "also offer Drover's example profiles" },
    ...acceptOption,
    ...envFileOption,
    "while-stdin": { description: "for a parent process: print `ready` once registered, and stop when stdin closes" },
    "coordinator-agents": {
      placeholder: "DIR",
      description: "for a parent process: the directory of agents that its coordinator reads",
    },
  },
  run: (input) => runRunner(withEnvFile(input)),
};

async function runRunner(input: CommandInput): Promise<number> {
  const { options, env, cwd } = input;
  const profileNames = readList(options, "profile");
  const onNotice = (message: string, cause?: unknown): void => {
    write(2, `drover runner: ${message}\n`);
    if (cause instanceof Error && env["DROVER_DEBUG"]) write(2, `${cause.stack}\n`);
  };
  // `drover up` has already resolved trust for the runner that it starts.
  const scope = { profiles: searchesForProfiles(profileNames) };
  const project = await findProject(env, cwd);
  const { locations, config } = options["while-stdin"] ? project : await resolveTrust(input, project, scope);
  const directories = findProfileDirectories(cwd, config, options["examples"] === true, env);
  const profiles = await openProfiles({
    names: profileNames.length > 0 ? profileNames : null,
    directories,
    isolation: config.isolation,
    env,
    onNotice,
    gate: createGateFactory(input, { locations, config }),
    coordinatorAgentsDirectory: readText(options, "coordinator-agents") ?? null,
  });
  if (profiles.profiles.length === 0) throw usageError("No profile found. Specify one with -x.", "runner", "--profile");
  const target = await findCoordinator(input, locations.stateDirectory);
  const { url } = target;
  const port = createHttpPort(target);
  if (target.token === null)
    onNotice(`no token is set, so ${url} cannot prove that it is your coordinator; this runner trusts it anyway`);
  const apiUrl = env["DROVER_COMMANDS_URL"] || findAddressForCommands(target, locations.stateDirectory, env);
  if (apiUrl === null)
    onNotice(
      `Drover commands inside runs cannot reach the coordinator, because the directory of its socket ${url} is hidden from them; set DROVER_COMMANDS_URL to its http:// or https:// address`,
    );
  const name = readText(options, "name");
  const hurry = new AbortController();
  const runner = await startRunner({
    port,
    ...(apiUrl === null ? {} : { apiUrl }),
    profiles: profiles.profiles,
    stateDirectory: locations.stateDirectory,
    projectDir: readText(options, "project-dir") ?? cwd,
    ...(name ? { name } : {}),
    ...(options["slots"] ? { slots: readSlots(options) } : {}),
    env: withoutCredentials(env),
    maxOutputKb: config.execution.max_output_kb,
    provider: config.provider,
    defaultTimeoutSeconds: config.execution.default_timeout_seconds,
    keepLogsDays: Math.min(config.retention.runs_days, config.retention.events_days),
    hurry: hurry.signal,
    onNotice,
    ...(options["quiet"] ? {} : { onProgress: (progress) => tryWrite(2, describeProgress(progress, new Date())) }),
  }).catch((error: unknown) => {
    throw error instanceof PortError ? registrationRefused(error, url) : error;
  });
  profiles.follow(runner);
  const stopImmediately = (): Promise<void> => {
    hurry.abort();
    return runner.stop();
  };
  const hasParent = options["while-stdin"] === true;
  // Handle signals before the messages below are printed: a program that reads them may send a signal at once.
  const shutdown = waitForShutdown({
    graceful() {
      if (!options["quiet"] && runner.running > 0) tryWrite(2, describeDrain(runner));
      return runner.drain();
    },
    immediate: stopImmediately,
    done: runner.done,
    hasParent,
  });
  if (!options["quiet"]) {
    write(2, describeOffers(profiles.profiles, hasParent ? null : (target.displayUrl ?? url)));
    if (profiles.absent.length > 0)
      write(2, `Not available (run ${findDroverCommand()} doctor to see why): ${listAbsent(profiles)}\n`);
  }
  if (hasParent) {
    for (const event of ["end", "error"]) process.stdin.resume().once(event, () => void stopImmediately());
    write(1, "ready\n");
  }
  await shutdown;
  await profiles.stop();
  port.close();
  if (!options["quiet"] && !hasParent) tryWrite(2, "Stopped.\n");
  return 0;
}

function describeDrain({ running, drainMs }: Runner): string {
  const [runs, have] = running === 1 ? ["1 run is", "It has"] : [`${running} runs are`, "They have"];
  return `Stopping: ${runs} still active. ${have} ${drainMs / 1000} s to finish. Press Ctrl-C again to stop at once.\n`;
}

/** Describes each profile in a line, or all in one line if `url` is null, because the user already knows the coordinator. */
function describeOffers(profiles: readonly RunnerProfile[], url: string | null): string {
  const offers = profiles.map(({ loaded, agents }) => ({
    profile: loaded.name,
    agents: agents.map(({ name }) => name).join(", "),
  }));
  if (url === null) return `Offers: ${offers.map(({ profile, agents }) => agents || profile).join(", ")}\n`;
  return offers.map(({ profile, agents }) => `Offers ${profile} to ${url}${agents && `: ${agents}`}\n`).join("");
}

/** With DROVER_ENROLMENT the runner gets its own token and stores it. After that, it needs no credentials in its environment. */
async function findCoordinator(input: CommandInput, stateDirectory: string): Promise<Target> {
  const { target } = await connect(input);
  if (!target) {
    throw new RequestError({
      code: "DROVER-API-023",
      field: "DROVER_API_URL",
      message: "No coordinator was found.",
      next: "Start one here with `drover coordinator`, or set DROVER_API_URL and DROVER_API_KEY.",
    });
  }
  const enrolment = input.env["DROVER_ENROLMENT"];
  const readToken = (): string | null => readStoredToken(stateDirectory, "runner-token");
  if (enrolment && readToken() === null)
    await enrolRunner(target, enrolment, runnerTokenFile(recordDirectory(stateDirectory)));
  // Without a token, a coordinator with authentication refuses the registration.
  return { ...target, token: enrolment ? readToken() : (target.token ?? readToken()) };
}

/** Describes the start or end of a run in one line of the runner's log. */
export function describeProgress({ run_id, attempt, agent_name, ended }: RunProgress, at: Date): string {
  const run = `${at.toISOString()} run ${run_id} of ${agent_name}${attempt > 1 ? `, attempt ${attempt}` : ""}`;
  if (ended === null) return `${run}: started\n`;
  const { outcome, durationMs } = ended;
  if (outcome.status === "cancelled" && outcome.by === "shutdown")
    return `${run}: stopped after ${formatDuration(durationMs)} and put back in the queue, because the runner is stopping; it will run again\n`;
  const reason = outcome.status === "failed" ? ` (${outcome.reason})` : "";
  return `${run}: ${outcome.status}${reason} after ${formatDuration(durationMs)}\n`;
}

/** Explains to the operator why the coordinator refused the registration. */
function registrationRefused({ conflict, message, cause }: PortError, url: string): HostError {
  const [code, next] =
    conflict === "unauthorized"
      ? ([
          "DROVER-API-009",
          "Set DROVER_API_KEY to a token that may register a runner, or DROVER_ENROLMENT to the output of `drover tokens enrol SUBJECT`.",
        ] as const)
      : conflict === "unproven"
        ? ([
            "DROVER-API-034",
            "Set DROVER_API_KEY to a token of your coordinator, or DROVER_ENROLMENT to the output of `drover tokens enrol SUBJECT`. Behind a proxy or a forwarded port, start the coordinator with --public-url.",
          ] as const)
        : conflict === "duplicate_runner"
          ? (["DROVER-API-018", "Stop the other runner, or pass another --name."] as const)
          : (["DROVER-API-024", "Check the coordinator's log."] as const);
  return new HostError({ code, message: `${url} refused to register this runner: ${message}`, next, cause });
}

/** Removes the runner's own credentials from the environment of its runs. */
function withoutCredentials({
  DROVER_API_KEY: _key,
  DROVER_ENROLMENT: _enrolment,
  ...env
}: CommandInput["env"]): CommandInput["env"] {
  return env;
}

function readSlots(options: CommandInput["options"]): number {
  const slots = Number(readText(options, "slots"));
  if (Number.isInteger(slots) && slots >= 1 && slots <= 1000) return slots;
  throw usageError("--slots takes a whole number from 1 to 1000.", "runner", "--slots");
}
