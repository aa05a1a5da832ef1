import { createHttpPort } from "../wire/http-port.ts";
import type { Target } from "../wire/http-transport.ts";
import { findLocal } from "../local.ts";
import { HostError, RequestError } from "../model/errors.ts";
import { PortError } from "../model/port-error.ts";
import { recordDirectory, runnerTokenFile } from "../model/state-layout.ts";
import { absentNames, openProfiles, profileFolders } from "../compose/open-profiles.ts";
import { startRunner } from "../runner.ts";
import { acceptOption, agentGateFor } from "./agents-accept.ts";
import { readKeptToken } from "./announcement.ts";
import { connect } from "./connect.ts";
import { enrolRunner } from "./enrol-runner.ts";
import { envFileOption, withEnvFile } from "./env-file.ts";
import { write } from "./io.ts";
import { type CommandInput, type CommandSpec, list, text, usage } from "./options.ts";
import { searchesForProfiles, resolveTrust } from "./resolve-trust.ts";
import { waitForShutdown } from "./wait-for-shutdown.ts";

export const runnerCommand: CommandSpec = {
  name: "runner",
  summary: "claims runs and carries them out",
  takes: "-x PROFILE",
  arity: [0, 0],
  examples: [
    ["drover runner -x echo", "one profile, for the coordinator of this place"],
    [
      "DROVER_API_URL=https://drover.example DROVER_API_KEY=drv_... drover runner -x ./profiles/build.json --name b1",
      "a remote one",
    ],
    ["drover runner -x claude --env-file .env", "its address, token and the rest from a file"],
  ],
  options: {
    profile: { value: "P", short: "x", repeat: true, about: "a profile by name or path; each is a registration" },
    name: { value: "N", about: "tells runners of one host and directory apart" },
    slots: { value: "N", about: "runs at once, in place of the profile's number" },
    "project-dir": { value: "DIR", about: "where runs work that name no directory (default here)" },
    examples: { about: "offer the examples that come with Drover too" },
    ...acceptOption,
    ...envFileOption,
    "while-stdin": { about: "for a program that starts it: end when stdin does, print `ready` once registered" },
  },
  run: (input) => runRunner(withEnvFile(input)),
};

async function runRunner(input: CommandInput): Promise<number> {
  const { options, env, cwd } = input;
  const wanted = list(options, "profile");
  const onNotice = (message: string, cause?: unknown): void => {
    write(2, `drover runner: ${message}\n`);
    if (cause instanceof Error && env["DROVER_DEBUG"]) write(2, `${cause.stack}\n`);
  };
  // the one that `up` starts leaves the telling to it
  const looks = { profiles: searchesForProfiles(wanted) };
  const found = await findLocal(env, cwd);
  const { places, config } = options["while-stdin"] ? found : await resolveTrust(input, found, looks);
  const folders = profileFolders(cwd, config, options["examples"] === true, env);
  const profiles = await openProfiles({
    wanted: wanted.length > 0 ? wanted : null,
    folders,
    isolation: config.isolation,
    env,
    onNotice,
    gate: agentGateFor(input, { places, config }),
  });
  if (profiles.profiles.length === 0)
    throw usage("There is no profile to offer: name one with -x.", "runner", "--profile");
  const target = await findCoordinator(input, places.stateDirectory);
  const { url } = target;
  const port = createHttpPort(target);
  if (target.token === null)
    onNotice(`there is no token, so ${url} cannot prove that it is your coordinator; this runner does what it says`);
  const name = text(options, "name");
  const hurry = new AbortController();
  const runner = await startRunner({
    port,
    // the socket lies in the record, which no command sees
    apiUrl: env["DROVER_COMMANDS_URL"] || target.shownAs || url,
    profiles: profiles.profiles,
    stateDirectory: places.stateDirectory,
    projectDir: text(options, "project-dir") ?? cwd,
    ...(name ? { name } : {}),
    ...(options["slots"] ? { slots: readSlots(options) } : {}),
    env: withoutOurKey(env),
    maxOutputKb: config.execution.max_output_kb,
    provider: config.provider,
    defaultTimeoutSeconds: config.execution.default_timeout_seconds,
    keepLogsDays: Math.min(config.retention.runs_days, config.retention.events_days),
    hurry: hurry.signal,
    onNotice,
  }).catch((error: unknown) => {
    throw error instanceof PortError ? notRegistered(error, url) : error;
  });
  profiles.follow(runner);
  const atOnce = (): Promise<void> => {
    hurry.abort();
    return runner.stop();
  };
  const byParent = options["while-stdin"] === true;
  // before it says that it is there: whoever reads that may end it at once
  const ended = waitForShutdown({ gently: () => runner.drain(), atOnce, ended: runner.done, byParent });
  if (!options["quiet"]) {
    for (const { loaded, agents } of profiles.profiles) {
      write(
        2,
        `Offers ${loaded.name}${agents.length > 0 ? `: ${agents.map((agent) => agent.name).join(", ")}` : ""}\n`,
      );
    }
    if (profiles.absent.length > 0) write(2, `Not here (drover doctor says why): ${absentNames(profiles)}\n`);
  }
  if (byParent) {
    for (const over of ["end", "error"]) process.stdin.resume().once(over, () => void atOnce());
    write(1, "ready\n");
  }
  await ended;
  await profiles.stop();
  port.close();
  return 0;
}

/** With DROVER_ENROLMENT the runner gets a token of its own, once, and keeps it; from then on it needs neither variable. */
async function findCoordinator(input: CommandInput, stateDirectory: string): Promise<Target> {
  const { target } = await connect(input);
  if (!target) {
    throw new RequestError({
      code: "DROVER-API-023",
      field: "DROVER_API_URL",
      message: "No coordinator was found.",
      next: "Start one here with `drover coordinator`, or name one with DROVER_API_URL and DROVER_API_KEY.",
    });
  }
  const enrolment = input.env["DROVER_ENROLMENT"];
  const kept = (): string | null => readKeptToken(stateDirectory, "runner-token");
  if (enrolment && kept() === null)
    await enrolRunner(target, enrolment, runnerTokenFile(recordDirectory(stateDirectory)));
  // without one, a coordinator with auth refuses the registration
  return { ...target, token: enrolment ? kept() : (target.token ?? kept()) };
}

/** What the coordinator has against it is the operator's to mend. */
function notRegistered({ conflict, message, cause }: PortError, url: string): HostError {
  const [code, next] =
    conflict === "unauthorized"
      ? ([
          "DROVER-API-009",
          "Set DROVER_API_KEY to a token that may register a runner, or DROVER_ENROLMENT to what `drover tokens enrol SUBJECT` printed.",
        ] as const)
      : conflict === "unproven"
        ? ([
            "DROVER-API-034",
            "Set DROVER_API_KEY to a token of your coordinator, or DROVER_ENROLMENT to what `drover tokens enrol SUBJECT` printed. Behind a proxy or a forwarded port, start the coordinator with --public-url.",
          ] as const)
        : conflict === "duplicate_runner"
          ? (["DROVER-API-018", "End the other one, or tell them apart with --name."] as const)
          : (["DROVER-API-024", "The coordinator's own log may say more."] as const);
  return new HostError({ code, message: `${url} did not take this runner: ${message}`, next, cause });
}

/** What a runner logs in with is not for what it runs. */
function withoutOurKey({
  DROVER_API_KEY: _key,
  DROVER_ENROLMENT: _enrolment,
  ...env
}: CommandInput["env"]): CommandInput["env"] {
  return env;
}

function readSlots(options: CommandInput["options"]): number {
  const slots = Number(text(options, "slots"));
  if (Number.isInteger(slots) && slots >= 1 && slots <= 1000) return slots;
  throw usage("--slots takes a whole number from 1 to 1000.", "runner", "--slots");
}
