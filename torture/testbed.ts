import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { recordDirectory, tokenFile } from "../src/model/state-layout.ts";
import type { Agent } from "../src/model/agent.ts";
import type { RunnerRow } from "../src/model/dispatch-ops.ts";
import type { RunnerOptions } from "../src/runner.ts";
import { type ApiClient, createClient } from "../src/wire/client.ts";
import {
  type Coordinators,
  type CoordinatorTimes,
  type FleetAccess,
  openCoordinators,
  type CoordinatorSlot,
} from "./coordinators.ts";
import type { Tools } from "./finding.ts";
import { type Child, createProcesses, type Processes } from "./processes.ts";
import { retryWhileUnreachable, waitFor } from "./wait.ts";
import { createWorkScript } from "./work-script.ts";

/**
 * A temporary directory with a coordinator and runners in separate processes. On PostgreSQL it has its own database and
 * several coordinators behind a balancer. Everything is removed afterwards.
 */
export interface Testbed {
  directory: string;
  /** The first coordinator's state directory. */
  readonly state: string;
  /** The address for clients and runners. */
  url: string;
  processes: Processes;
  client: ApiClient;
  token: string;
  coordinators: readonly CoordinatorSlot[];
  /** A port reserved for a proxy in front of the coordinators. */
  proxyPort: number;
  /** null if the record is the SQLite file in `state`. */
  fleet: FleetAccess | null;
  startRunner(runner: RunnerSpec): Promise<{ child: Child; runner_id: string }>;
  /** Starts a runner without waiting until it is online. */
  spawnRunner(runner: RunnerSpec): Child;
  /** Creates an agent whose command is scripts/work.sh. */
  putAgent(name: string, changes?: Partial<Agent>): Promise<void>;
  /** `run_id.attempt.execution_id` of every command that started. */
  marks(): string[];
}

export interface RunnerSpec {
  name: string;
  slots: number;
  tags?: string[];
  /** The coordinator's address given to the runner. */
  url?: string;
  times?: RunnerOptions["times"];
  /** Defaults to the runner's name. */
  profileName?: string;
  /** Additional profile fields. */
  profile?: Record<string, unknown>;
  /** Additional environment variables. */
  env?: Record<string, string>;
}

interface TestbedOptions {
  /** The number of coordinators on PostgreSQL. */
  coordinators?: number;
  /** The size of a private disk for the state directories, in mount's syntax. */
  smallDisk?: string;
}

/** Opens a testbed, runs the work and removes the testbed. `times` are the coordinators'; null means the command line's defaults. */
export async function withTestbed<T>(
  tools: Tools,
  times: CoordinatorTimes | null,
  work: (testbed: Testbed) => Promise<T>,
  { coordinators: count = 2, smallDisk }: TestbedOptions = {},
): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), "drover-torture-"));
  const processes = createProcesses();
  // Also clean up if this process receives a signal.
  const atExit = (): void => {
    processes.killAll();
    rmSync(directory, { recursive: true, force: true });
  };
  process.once("exit", atExit);
  const database = tools.engine === "postgres" ? await tools.openDatabase() : null;
  try {
    const coordinators = await openCoordinators({ tools, times, directory, processes, database, count, smallDisk });
    try {
      return await work(await openTestbed(tools, directory, processes, coordinators));
    } finally {
      await processes.endAll();
      await coordinators.close();
    }
  } finally {
    process.off("exit", atExit);
    await processes.endAll();
    await database?.drop();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

async function openTestbed(
  { root, host }: Tools,
  directory: string,
  processes: Processes,
  { url, slots: coordinators, proxyPort, fleet }: Pick<Coordinators, "url" | "slots" | "proxyPort" | "fleet">,
): Promise<Testbed> {
  const marks = join(directory, "marks");
  for (const path of [marks, join(directory, "profiles"), join(directory, "scripts")]) mkdirSync(path);
  const script = join(directory, "scripts", "work.sh");
  writeFileSync(script, createWorkScript(marks));
  chmodSync(script, 0o755);
  const token = await readToken(coordinators[0]!.state);
  const client = createClient({ url, token });
  const bin = join(root, "bin", "drover.js");

  const spawnRunner = (spec: RunnerSpec): Child => {
    const profile = join(directory, "profiles", `${spec.profileName ?? spec.name}.json`);
    writeFileSync(
      profile,
      JSON.stringify({
        type: "procedural",
        config: {},
        tags: spec.tags ?? [],
        require_matching_tags: spec.tags !== undefined,
        ...spec.profile,
      }),
    );
    const stateDirectory = join(directory, "runners", spec.name);
    const { name, slots, times } = spec;
    const at = spec.url ?? url;
    const args = times
      ? [host, "runner", JSON.stringify({ profile, url: at, token, stateDirectory, name, slots, times })]
      : [bin, "runner", "-x", profile, "--name", name, "--slots", String(slots)];
    return processes.start([process.execPath, ...args], {
      cwd: directory,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: directory,
        DROVER_TRUST: directory,
        DROVER_STATE_DIR: stateDirectory,
        DROVER_API_URL: at,
        DROVER_API_KEY: token,
        ...spec.env,
      },
    });
  };

  return {
    directory,
    get state() {
      return coordinators[0]!.state;
    },
    url,
    processes,
    client,
    token,
    coordinators,
    proxyPort,
    fleet,
    spawnRunner,
    async startRunner(spec) {
      const child = spawnRunner(spec);
      const row = await waitFor(async () => {
        if (!child.alive) throw new Error(`The runner ended: ${child.output}`);
        return findOnlineRunner(spec.name, await retryWhileUnreachable(() => client.runners.list()));
      }, 120_000);
      if (row === null) throw new Error(`The runner ${spec.name} did not come up: ${child.output}`);
      return { child, runner_id: row.runner_id };
    },
    async putAgent(name, changes = {}) {
      await retryWhileUnreachable(() => client.agents.put(name, { type: "procedural", command: script, ...changes }));
    },
    marks: () => readdirSync(marks),
  };
}

/** A fleet's coordinator writes its token to a different file, and only after it starts to answer. */
async function readToken(state: string): Promise<string> {
  const files = (["token", "fleet-token"] as const).map((name) => tokenFile(recordDirectory(state), name));
  const file = await waitFor(async () => files.find((item) => existsSync(item)) ?? null, 60_000, 10);
  if (file === null) throw new Error(`There is no token in ${state}.`);
  return readFileSync(file, "utf8").trim();
}

function findOnlineRunner(name: string, { items }: { items: RunnerRow[] }): RunnerRow | null {
  return items.find((row) => row.name === name && row.status === "online") ?? null;
}
