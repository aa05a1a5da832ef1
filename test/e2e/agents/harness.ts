import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, afterEach } from "vitest";
import type { RunEvent } from "../../../src/model/event.ts";
import type { StoredFile } from "../../../src/model/file.ts";
import type { Run } from "../../../src/model/run.ts";
import { type ClientName, clientNames, prepareClient } from "../../clients/clients.ts";
import type { Script } from "../../model-server/script.ts";
import { type ModelServer, startModelServer } from "../../model-server/server.ts";
import { bin, drover, createDirectory, type Lifetime, type CommandResult, root } from "../drover.ts";
import { runToEnd, startCoordinator, type CoordinatorProcess } from "../coordinator-process.ts";
import { listEvents } from "./runs.ts";

export interface AgentHarnessOptions {
  script: Script;
  /** Defaults to all three. */
  clients?: readonly ClientName[];
  /** Overrides fields of the profiles that come with Drover. */
  profile?: Readonly<Record<string, unknown>>;
  /** Additional environment variables of the runner. */
  env?: Readonly<Record<string, string>>;
  /** Prepares the runner's directory before it starts. */
  before?: (cwd: string) => void;
}

/** A coordinator and a runner in separate processes, the real clients, and a scripted model. */
export interface AgentHarness {
  model: ModelServer;
  coordinator: CoordinatorProcess;
  /** The runner's directory. */
  cwd: string;
  /** The runner's HOME. */
  home: string;
  /** Runs an agent and waits for the end. `more` adds fields to the request. */
  run(agent: string, prompt: string, changes?: Readonly<Record<string, unknown>>): Promise<Run>;
  events(run: Run): Promise<RunEvent[]>;
  /** Path and content of a run's files. */
  files(run: Run): Promise<Record<string, string>>;
  /** Runs the command line against the coordinator. */
  drover(...args: string[]): Promise<CommandResult>;
  /** Stops the runner as an operator would, and starts it again on the same state. */
  restartRunner(): Promise<void>;
}

const ending: Record<Lifetime, (() => Promise<unknown>)[]> = { test: [], file: [] };
// In order, so that runs end before the model they talk to.
const endAll = async (lifetime: Lifetime): Promise<void> => {
  for (const end of ending[lifetime].splice(0).toReversed()) await end();
};
afterEach(() => endAll("test"));
afterAll(() => endAll("file"));

/**
 * Shares one harness among the tests of a file, created on first use. The request list is cleared for each test; agents,
 * runs and sessions of earlier tests remain.
 */
export function shareAgentHarness(options: AgentHarnessOptions): () => Promise<AgentHarness> {
  let shared: Promise<AgentHarness> | undefined;
  return async () => {
    const harness = await (shared ??= startAgentHarness(options, "file"));
    harness.model.requests.length = 0;
    return harness;
  };
}

export async function startAgentHarness(
  options: AgentHarnessOptions,
  lifetime: Lifetime = "test",
): Promise<AgentHarness> {
  const cwd = createDirectory(undefined, lifetime);
  const home = join(cwd, "home");
  for (const path of [home, join(cwd, "profiles")]) mkdirSync(path);
  const model = await startModelServer(options.script);
  ending[lifetime].push(() => model.stop());
  const clients = options.clients ?? clientNames;
  const variables = clients.map((name) => {
    const { bin: program, env } = prepareClient(name, { home, url: model.url });
    writeProfile(cwd, name, options.profile ?? {});
    return { ...env, [`${name.toUpperCase()}_BIN`]: program };
  });
  options.before?.(cwd);
  const coordinator = await startCoordinator(cwd, {}, lifetime);
  const coordinatorEnv = { DROVER_API_URL: coordinator.url, DROVER_API_KEY: coordinator.token };
  const env = Object.assign({}, ...variables, coordinatorEnv, options.env, { DROVER_STATE_DIR: join(cwd, "runner") });
  let runner = await startRunner(cwd, clients, env);
  ending[lifetime].push(() => endRunner(runner, "SIGKILL"));
  return {
    model,
    coordinator,
    cwd,
    home,
    run: (agent_name, prompt, changes = {}) => runToEnd(coordinator, { agent_name, prompt, ...changes }),
    events: ({ run_id }) => listEvents(coordinator, run_id),
    async files({ run_id }) {
      const { json } = await coordinator.call<{ items: StoredFile[] }>("GET", `/runs/${run_id}/files`);
      const contents = json.items.map(
        async ({ path }) => [path, await readContent(coordinator, run_id, path)] as const,
      );
      return Object.fromEntries(await Promise.all(contents));
    },
    drover: (...args) => drover(args, { cwd, env: coordinatorEnv }),
    async restartRunner() {
      await endRunner(runner, "SIGTERM");
      runner = await startRunner(cwd, clients, env);
    },
  };
}

/** Writes the profile that comes with Drover with a test's changes. */
function writeProfile(cwd: string, name: ClientName, changes: Readonly<Record<string, unknown>>): void {
  const bundled = join(root, "bundled");
  const profile = JSON.parse(readFileSync(join(bundled, "profiles", `${name}.json`), "utf8"));
  const agents_dir = resolve(bundled, profile.agents_dir);
  writeFileSync(join(cwd, "profiles", `${name}.json`), JSON.stringify({ ...profile, agents_dir, ...changes }));
}

/** Starts the runner and resolves once every profile is offered. */
function startRunner(cwd: string, clients: readonly string[], env: Record<string, string>): Promise<ChildProcess> {
  const profileArgs = clients.flatMap((name) => ["-x", name]);
  const child = spawn(process.execPath, [bin, "runner", ...profileArgs], {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", DROVER_TRUST: cwd, ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let output = "";
  return new Promise((done, reject) => {
    child.once("error", reject);
    child.once("close", () => reject(new Error(`drover runner exited: ${output}`)));
    child.stderr?.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
      if (/^Offers /m.test(output)) done(child);
    });
  });
}

function endRunner(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((done) => {
    child.once("close", () => done());
    child.kill(signal);
  });
}

async function readContent({ url, token }: CoordinatorProcess, run_id: string, path: string): Promise<string> {
  const inPath = path.split("/").map(encodeURIComponent).join("/");
  const response = await fetch(`${url}/runs/${run_id}/files/${inPath}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  if (!response.ok) throw new Error(`GET /runs/${run_id}/files/${path} was answered with ${response.status}`);
  return response.text();
}
