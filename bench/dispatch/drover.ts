import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { announcementFile, recordDirectory, tokenFile } from "../../src/model/state-layout.ts";
import { createClient, type ApiClient } from "../../src/wire/client.ts";
import { owned, stopChild } from "./children.ts";

export interface Drover {
  url: string;
  token: string;
  client: ApiClient;
  coordinatorPid: number;
  runnerPid: number;
  stop(): Promise<void>;
}

const slots = 10;

/** The database of a record outside the state directory. */
export interface Database {
  url: string;
  secret: string;
}

/** Starts a coordinator and a runner from the command line, with default settings except for their location. */
export async function startDrover(
  root: string,
  directory: string,
  jobTimesPath: string,
  database: Database | null = null,
): Promise<Drover> {
  writeDefinitions(root, directory, jobTimesPath);
  const coordinator = await startCoordinator(root, directory, "state", database);
  const { client, url, token } = coordinator;
  const runner = run(
    root,
    directory,
    "state",
    null,
    "runner",
    "-x",
    join(directory, "profiles", "noop.json"),
    "-x",
    join(directory, "profiles", "commands.json"),
  );
  await waitUntil("the runner", async () => (await client.runners.list()).items.length === 2);
  return {
    url,
    token,
    client,
    coordinatorPid: coordinator.pid,
    runnerPid: runner.pid ?? 0,
    async stop() {
      await stopChild(runner);
      await coordinator.stop();
    },
  };
}

/** Starts a coordinator on its own state directory or on a database, with the directory's agents. */
export async function startCoordinator(
  root: string,
  directory: string,
  state: string,
  database: Database | null = null,
) {
  const child = run(
    root,
    directory,
    state,
    database,
    "coordinator",
    "--port",
    "0",
    "--agents",
    join(directory, "agents"),
  );
  const announcement = announcementFile(recordDirectory(join(directory, state)));
  await waitUntil("the coordinator", () => existsSync(announcement));
  const { url } = JSON.parse(readFileSync(announcement, "utf8")) as { url: string };
  const token = readFileSync(
    tokenFile(recordDirectory(join(directory, state)), database ? "fleet-token" : "token"),
    "utf8",
  ).trim();
  return { url, token, client: createClient({ url, token }), pid: child.pid ?? 0, stop: () => stopChild(child) };
}

function run(
  root: string,
  directory: string,
  state: string,
  database: Database | null,
  ...args: string[]
): ChildProcess {
  const { DATABASE_URL: _url, DROVER_SECRET: _secret, DROVER_SECRET_FILE: _file, ...own } = process.env;
  const env = {
    ...own,
    DROVER_TRUST: directory,
    DROVER_STATE_DIR: join(directory, state),
    ...(database ? { DATABASE_URL: database.url, DROVER_SECRET: database.secret } : {}),
  };
  return owned(
    spawn(process.execPath, [join(root, "bin", "drover.js"), ...args, "--quiet"], {
      env,
      cwd: directory,
      stdio: ["pipe", "ignore", "inherit"],
    }),
  );
}

export async function waitUntil(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = performance.now() + 20_000; !(await condition());) {
    if (performance.now() > deadline) throw new Error(`timed out waiting for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Waits until the coordinator has stored the end of every run. */
export async function waitForAllEnded({ client }: Drover): Promise<void> {
  await waitUntil("the end of all runs", async () => {
    const open = await client.runs.list({ status: ["pending", "claimed", "running", "stopping"], limit: 1 });
    return open.items.length === 0;
  });
}

/** Writes the agents and profiles of the bench. */
export function writeDefinitions(root: string, directory: string, jobTimesPath: string): void {
  const write = (folder: string, name: string, value: object): void => {
    mkdirSync(join(directory, folder), { recursive: true });
    writeFileSync(join(directory, folder, `${name}.json`), JSON.stringify(value));
  };
  const parameters_schema = {
    type: "object",
    properties: { id: { type: "string" }, message: { type: "string" } },
    required: ["id"],
    additionalProperties: false,
  };
  write("agents", "noop", { name: "noop", type: "procedural", executor: "noop", command: "none", parameters_schema });
  write("agents", "true", { name: "true", type: "procedural", command: "/bin/true", parameters_schema });
  write("agents", "obeys", {
    name: "obeys",
    type: "procedural",
    command: join(root, "bench", "dispatch", "obeys.sh"),
    parameters_validation: "executor",
  });
  write("agents", "ignores", {
    name: "ignores",
    type: "procedural",
    command: join(root, "bench", "dispatch", "ignores.sh"),
    parameters_validation: "executor",
  });
  write("profiles", "noop", {
    type: "noop",
    module: join(root, "bench", "dispatch", "noop-executor.mjs"),
    config: { socket: jobTimesPath },
    slots,
  });
  write("profiles", "commands", { type: "procedural", slots });
}
