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
import { type Coordinators, type CoordinatorTimes, type Fleet, openCoordinators, type Seat } from "./coordinators.ts";
import type { Tools } from "./finding.ts";
import { type Child, createProcesses, type Processes } from "./processes.ts";
import { patiently, waitFor } from "./wait.ts";
import { workScript } from "./work-script.ts";

/**
 * A folder of its own with a coordinator and runners in processes of their own; over PostgreSQL with a database of its
 * own, and several coordinators behind a balancer. Nothing of it is left afterwards.
 */
export interface Place {
  directory: string;
  /** Of the first coordinator. */
  readonly state: string;
  /** Where clients and runners go. */
  url: string;
  processes: Processes;
  client: ApiClient;
  token: string;
  coordinators: readonly Seat[];
  /** For a proxy of the coordinators. */
  proxyPort: number;
  /** null: the record is SQLite's, in `state`. */
  fleet: Fleet | null;
  startRunner(runner: RunnerSpec): Promise<{ child: Child; runner_id: string }>;
  /** The same, but without waiting until it is there. */
  spawnRunner(runner: RunnerSpec): Child;
  /** An agent whose command is scripts/work.sh. */
  putAgent(name: string, changes?: Partial<Agent>): Promise<void>;
  /** `run_id.attempt.execution_id` of every command that began. */
  marks(): string[];
}

export interface RunnerSpec {
  name: string;
  slots: number;
  tags?: string[];
  /** Where it is told the coordinator is. */
  url?: string;
  times?: RunnerOptions["times"];
  /** Unless given, its own name. */
  profileName?: string;
  /** More of its profile. */
  profile?: Record<string, unknown>;
  /** More variables of it. */
  env?: Record<string, string>;
}

interface PlaceOptions {
  /** Over PostgreSQL. */
  coordinators?: number;
  /** Of a size as mount takes it, for the state directories. */
  smallDisk?: string;
}

/** `times`: of the coordinators; null: the command line's own. */
export async function inPlace<T>(
  tools: Tools,
  times: CoordinatorTimes | null,
  work: (place: Place) => Promise<T>,
  { coordinators: count = 2, smallDisk }: PlaceOptions = {},
): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), "drover-torture-"));
  const processes = createProcesses();
  // also where whoever started all this is told to end
  const atExit = (): void => {
    processes.killAll();
    rmSync(directory, { recursive: true, force: true });
  };
  process.once("exit", atExit);
  const database = tools.engine === "postgres" ? await tools.openDatabase() : null;
  try {
    const coordinators = await openCoordinators({ tools, times, directory, processes, database, count, smallDisk });
    try {
      return await work(await openPlace(tools, directory, processes, coordinators));
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

async function openPlace(
  { root, host }: Tools,
  directory: string,
  processes: Processes,
  { url, seats, proxyPort, fleet }: Pick<Coordinators, "url" | "seats" | "proxyPort" | "fleet">,
): Promise<Place> {
  const marks = join(directory, "marks");
  for (const folder of [marks, join(directory, "profiles"), join(directory, "scripts")]) mkdirSync(folder);
  const script = join(directory, "scripts", "work.sh");
  writeFileSync(script, workScript(marks));
  chmodSync(script, 0o755);
  const token = await tokenOf(seats[0]!.state);
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
    const words = times
      ? [host, "runner", JSON.stringify({ profile, url: at, token, stateDirectory, name, slots, times })]
      : [bin, "runner", "-x", profile, "--name", name, "--slots", String(slots)];
    return processes.start([process.execPath, ...words], {
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
      return seats[0]!.state;
    },
    url,
    processes,
    client,
    token,
    coordinators: seats,
    proxyPort,
    fleet,
    spawnRunner,
    async startRunner(spec) {
      const child = spawnRunner(spec);
      const row = await waitFor(async () => {
        if (!child.alive) throw new Error(`The runner ended: ${child.said}`);
        return onlineAs(spec.name, await patiently(() => client.runners.list()));
      }, 120_000);
      if (row === null) throw new Error(`The runner ${spec.name} did not come up: ${child.said}`);
      return { child, runner_id: row.runner_id };
    },
    async putAgent(name, changes = {}) {
      await patiently(() => client.agents.put(name, { type: "procedural", command: script, ...changes }));
    },
    marks: () => readdirSync(marks),
  };
}

/** A fleet's coordinator answers a moment before it has written it there, and has a file of its own for it. */
async function tokenOf(state: string): Promise<string> {
  const files = (["token", "fleet-token"] as const).map((name) => tokenFile(recordDirectory(state), name));
  const file = await waitFor(async () => files.find((one) => existsSync(one)) ?? null, 60_000, 10);
  if (file === null) throw new Error(`There is no token in ${state}.`);
  return readFileSync(file, "utf8").trim();
}

function onlineAs(name: string, { items }: { items: RunnerRow[] }): RunnerRow | null {
  return items.find((row) => row.name === name && row.status === "online") ?? null;
}
