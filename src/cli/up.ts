import { join } from "node:path";
import { findAgentsDirectory } from "./agents-directory.ts";
import { findProject } from "../local.ts";
import type { RunningProcess } from "../model/process.ts";
import { createLocalClient } from "../compose/open-coordinator.ts";
import { trustTypes } from "../serve/trust-types.ts";
import { start } from "../process/start.ts";
import { createClient } from "../wire/client.ts";
import { envFileOption, withEnvFile } from "./env-file.ts";
import { suggestFirstRun } from "./suggest-first-run.ts";
import { tryWrite, write } from "./io.ts";
import { type CommandInput, type CommandSpec, readList, usageError } from "./options.ts";
import { readListenAddress, serveStateDirectory, serveOptions } from "./serve-state-directory.ts";
import { searchesForProfiles, resolveTrust } from "./resolve-trust.ts";
import { noteSharedRecord } from "./shared-record.ts";
import { createSignInAddress } from "./ui.ts";
import { waitForShutdown } from "./wait-for-shutdown.ts";
import { findDroverCommand } from "./drover-command.ts";

export const upCommand: CommandSpec = {
  name: "up",
  summary: "start a coordinator and a runner together",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover up", "all available profiles, on 127.0.0.1:8765"],
    ["drover up -x ./profiles/build.json --port 0", "one profile, on any free port"],
  ],
  options: {
    ...serveOptions,
    profile: {
      placeholder: "P",
      short: "x",
      repeat: true,
      description: "offer only this profile, by name or path (repeatable)",
    },
    slots: { placeholder: "N", description: "how many runs at a time (default: from the profiles)" },
    examples: { description: "also offer Drover's example profiles" },
    ...envFileOption,
  },
  run: (input) => startUp(withEnvFile(input)),
};

/** Starts the runner as a separate process, so that spawning commands does not block the coordinator or copy its memory. */
async function startUp(input: CommandInput): Promise<number> {
  const scope = { profiles: searchesForProfiles(readList(input.options, "profile")), agents: true };
  const project = await resolveTrust(input, await findProject(input.env, input.cwd), scope);
  if (!input.options["quiet"]) noteSharedRecord(input.cwd, input.env);
  const coordinator = await serveStateDirectory(input, project, readListenAddress(input, "up"));
  const address = coordinator.socket === null ? coordinator.url : `unix:${coordinator.socket}`;
  const abort = new AbortController();
  const runner = start(
    {
      executable: process.execPath,
      arguments: [
        join(__dirname, "..", "bin", "drover.js"),
        "runner",
        ...listRunnerArguments(input, findAgentsDirectory(input, project)),
      ],
      workingDirectory: input.cwd,
      environment: {
        DROVER_API_URL: address,
        DROVER_COMMANDS_URL: coordinator.url,
        DROVER_ALLOW_HTTP: coordinator.socket === null ? "1" : "",
        DROVER_API_KEY: await coordinator.issueRunnerToken(),
        // An enrolment would take precedence over the key.
        DROVER_ENROLMENT: "",
        DROVER_STATE_DIR: project.locations.stateDirectory,
      },
    },
    // The runner needs no isolation: it handles signals itself, and isolates its runs.
    {
      isolation: "none",
      stdin: "pipe",
      parentEnvironment: input.env,
      environment: { mode: "inherit", allow: ["*"] },
      graceMs: 35_000,
    },
    abort.signal,
  );
  runner.stderr?.setEncoding("utf8").on("data", (text: string) => write(2, text));
  let isShuttingDown = false;
  const announceWhenReady = async (): Promise<void> => {
    const isReady = await waitUntilReady(runner);
    if (isShuttingDown) return;
    if (!isReady)
      throw usageError("The runner failed to start. Fix the problem that its messages above describe.", "up");
    // Announce the coordinator only now: before the runner has registered, commands would find no agents.
    coordinator.announce();
    if (input.options["quiet"]) return;
    const { items } = await createLocalClient(coordinator, trustTypes).agents.list();
    write(2, describeStart(coordinator.url, coordinator.tokenFile, suggestFirstRun(items)));
    if (!coordinator.hasWeb) return;
    const { url: displayUrl, adminToken: token } = coordinator;
    // Plain HTTP is safe here, because the request stays within this process.
    const client = createClient({ url: address, displayUrl, token, allowHttp: true });
    write(2, `\nDashboard: ${await createSignInAddress(client)}\n`);
  };
  // Handle signals from the start, because nothing else would stop the runner.
  const shutdown = waitForShutdown({
    async graceful() {
      isShuttingDown = true;
      await runner.kill("shutdown");
      await coordinator.stop();
    },
    async immediate() {
      abort.abort("shutdown");
      // SIGTERM made the runner drain. Closing its stdin makes it stop without waiting.
      runner.stdin?.end();
      await runner.result;
      // Start this, but do not wait for it.
      void coordinator.stop();
    },
    done: runner.result.then(() => undefined),
  });
  await Promise.all([shutdown, announceWhenReady()]);
  if (isShuttingDown) {
    if (!input.options["quiet"]) tryWrite(2, "Stopped.\n");
    return 0;
  }
  const { error } = await runner.result;
  await coordinator.stop();
  write(2, `drover: the runner exited${error ? `: ${error.message}` : " without an error"}\n`);
  return 125;
}

function listRunnerArguments({ options }: CommandInput, agents: string | null): string[] {
  const slots = options["slots"];
  return [
    "--while-stdin",
    ...(agents === null ? [] : ["--coordinator-agents", agents]),
    ...readList(options, "profile").flatMap((profile) => ["-x", profile]),
    ...(typeof slots === "string" ? ["--slots", slots] : []),
    ...(options["examples"] ? ["--examples"] : []),
    ...(options["accept-agents"] ? ["--accept-agents"] : []),
    ...(options["quiet"] ? ["--quiet"] : []),
  ];
}

/** Resolves to true once the runner has registered all its profiles, or to false if it exits before that. */
function waitUntilReady({ stdout, result }: RunningProcess): Promise<boolean> {
  const isReady = new Promise<boolean>((resolve) => stdout?.once("data", () => resolve(true)));
  return Promise.race([isReady, result.then(() => false)]);
}

function describeStart(url: string, tokenFile: string, firstRun: string | null): string {
  return `
Drover is up at ${url}
  API reference   ${url}/docs
  admin token     ${tokenFile}

Try, in another terminal:
${firstRun === null ? "" : `  ${firstRun}\n`}  ${findDroverCommand()} agents list
  ${findDroverCommand()} runs list
  curl -s ${url}/agents -H "Authorization: Bearer $(cat ${tokenFile})"

Press Ctrl-C to stop: active runs get 30 s to finish. Press it again to stop at once.
`;
}
