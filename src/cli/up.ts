import { join } from "node:path";
import { findLocal } from "../local.ts";
import type { Running } from "../model/process.ts";
import { localClient } from "../compose/open-coordinator.ts";
import { trustTypes } from "../serve/trust-types.ts";
import { start } from "../process/start.ts";
import { createClient } from "../wire/client.ts";
import { envFileOption, withEnvFile } from "./env-file.ts";
import { suggestFirstRun } from "./suggest-first-run.ts";
import { write } from "./io.ts";
import { type CommandInput, type CommandSpec, list, usage } from "./options.ts";
import { readListen, serveStateDirectory, serveOptions } from "./serve-state-directory.ts";
import { searchesForProfiles, resolveTrust } from "./resolve-trust.ts";
import { signInAddress } from "./ui.ts";
import { waitForShutdown } from "./wait-for-shutdown.ts";

export const upCommand: CommandSpec = {
  name: "up",
  summary: "coordinator and runner by one command",
  takes: "",
  arity: [0, 0],
  examples: [
    ["drover up", "every profile found here, on 127.0.0.1:8765"],
    ["drover up -x ./profiles/build.json --port 0", "one profile, any free port"],
  ],
  options: {
    ...serveOptions,
    profile: { value: "P", short: "x", repeat: true, about: "only these profiles" },
    slots: { value: "N", about: "runs at once, in place of the profiles' numbers" },
    examples: { about: "offer the examples that come with Drover too" },
    ...envFileOption,
  },
  run: (input) => up(withEnvFile(input)),
};

/** The runner is a process of its own: what it spawns must not make the coordinator wait, nor its memory make spawning slow. */
async function up(input: CommandInput): Promise<number> {
  const looks = { profiles: searchesForProfiles(list(input.options, "profile")), agents: true };
  const local = await resolveTrust(input, await findLocal(input.env, input.cwd), looks);
  const coordinator = await serveStateDirectory(input, local, readListen(input, "up"));
  const reached = coordinator.socket === null ? coordinator.url : `unix:${coordinator.socket}`;
  const ending = new AbortController();
  const runner = start(
    {
      executable: process.execPath,
      arguments: [join(__dirname, "..", "bin", "drover.js"), "runner", ...runnerWords(input)],
      workingDirectory: input.cwd,
      environment: {
        DROVER_API_URL: reached,
        DROVER_COMMANDS_URL: coordinator.url,
        DROVER_ALLOW_HTTP: coordinator.socket === null ? "1" : "",
        DROVER_API_KEY: await coordinator.lendRunnerToken(),
        // it would go before the key
        DROVER_ENROLMENT: "",
        DROVER_STATE_DIR: local.places.stateDirectory,
      },
    },
    // not in a namespace: a stop is the runner's to pass on, and what it runs has namespaces of its own
    {
      isolation: "none",
      stdin: "pipe",
      parentEnvironment: input.env,
      environment: { mode: "inherit", allow: ["*"] },
      graceMs: 35_000,
    },
    ending.signal,
  );
  runner.stderr?.setEncoding("utf8").on("data", (text: string) => write(2, text));
  let told = false;
  const welcome = async (): Promise<void> => {
    const ready = await isReady(runner);
    if (told) return;
    if (!ready) throw usage("The runner did not come up; what it said stands above.", "up");
    // not before: a command that found us would be refused, as nobody offers its agent yet
    coordinator.announce();
    if (input.options["quiet"]) return;
    const { items } = await localClient(coordinator, trustTypes).agents.list();
    write(2, greeting(coordinator.url, coordinator.tokenFile, suggestFirstRun(items)));
    if (!coordinator.hasWeb) return;
    const { url: shownAs, adminToken: token } = coordinator;
    // its own process: what it would send is nobody else's to read
    const client = createClient({ url: reached, shownAs, token, allowHttp: true });
    write(2, `\nDashboard: ${await signInAddress(client)}\n`);
  };
  // a signal counts from the beginning: nobody else ends the runner
  const ended = waitForShutdown({
    async gently() {
      told = true;
      await runner.kill("shutdown");
      await coordinator.stop();
    },
    async atOnce() {
      ending.abort("shutdown");
      // its SIGTERM made it drain; without its stdin it waits no longer
      runner.stdin?.end();
      await runner.result;
      // begun, and not waited for
      void coordinator.stop();
    },
    ended: runner.result.then(() => undefined),
  });
  await Promise.all([ended, welcome()]);
  if (told) return 0;
  const { error } = await runner.result;
  await coordinator.stop();
  write(2, `drover: the runner ended: ${error?.message ?? "without a word"}\n`);
  return 125;
}

function runnerWords({ options }: CommandInput): string[] {
  const slots = options["slots"];
  return [
    "--while-stdin",
    ...list(options, "profile").flatMap((profile) => ["-x", profile]),
    ...(typeof slots === "string" ? ["--slots", slots] : []),
    ...(options["examples"] ? ["--examples"] : []),
    ...(options["accept-agents"] ? ["--accept-agents"] : []),
    ...(options["quiet"] ? ["--quiet"] : []),
  ];
}

/** Resolves once all profiles of the runner are registered; false if it ended before. */
function isReady({ stdout, result }: Running): Promise<boolean> {
  const ready = new Promise<boolean>((resolve) => stdout?.once("data", () => resolve(true)));
  return Promise.race([ready, result.then(() => false)]);
}

function greeting(url: string, tokenFile: string, first: string | null): string {
  return `
Drover is up at ${url}
  API reference   ${url}/docs
  admin token     ${tokenFile}

Try, in another terminal:
${first === null ? "" : `  ${first}\n`}  drover agents list
  drover runs list
  curl -s ${url}/agents -H "Authorization: Bearer $(cat ${tokenFile})"

Ctrl-C lets what runs finish, and ends.
`;
}
