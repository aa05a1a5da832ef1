import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CoordinatorOptions } from "../src/coordinator.ts";
import type { Agent } from "../src/model/agent.ts";
import type { RunnerRow } from "../src/model/dispatch-ops.ts";
import type { RunnerOptions } from "../src/runner.ts";
import { type Client, createClient } from "../src/wire/client.ts";
import type { Tools } from "./finding.ts";
import { type Child, createProcesses, type Processes } from "./processes.ts";
import { patiently, waitFor } from "./wait.ts";

/** A folder of its own with a coordinator and runners in processes of their own. Nothing of it is left afterwards. */
export interface Place {
  directory: string;
  state: string;
  url: string;
  processes: Processes;
  client: Client;
  token: string;
  /** The one it began with: to kill it, and to start another on the same address, is the caller's. */
  coordinator: Child;
  startCoordinator(): Promise<Child>;
  /** The same, but without waiting until it answers. */
  spawnCoordinator(): Child;
  startRunner(runner: RunnerSpec): Promise<{ child: Child; runner_id: string }>;
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
}

export type CoordinatorTimes = Pick<CoordinatorOptions, "leaseMs" | "pollHoldMs" | "rescueEveryMs" | "unmatchedMs">;

/** `times`: of the coordinator; null: the command line's own. */
export async function inPlace<T>(
  tools: Tools,
  times: CoordinatorTimes | null,
  work: (place: Place) => Promise<T>,
): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), "drover-torture-"));
  const processes = createProcesses();
  // also where whoever started all this is told to end
  const atExit = (): void => {
    processes.killAll();
    rmSync(directory, { recursive: true, force: true });
  };
  process.once("exit", atExit);
  try {
    return await work(await openPlace(tools, times, directory, processes));
  } finally {
    process.off("exit", atExit);
    await processes.endAll();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

async function openPlace(
  { root, host }: Tools,
  times: CoordinatorTimes | null,
  directory: string,
  processes: Processes,
): Promise<Place> {
  const state = join(directory, "state");
  const marks = join(directory, "marks");
  for (const folder of [marks, join(directory, "profiles"), join(directory, "scripts")]) mkdirSync(folder);
  const script = join(directory, "scripts", "work.sh");
  writeFileSync(script, workScript(marks));
  chmodSync(script, 0o755);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const bin = join(root, "bin", "drover.js");
  const env = { PATH: process.env["PATH"] ?? "", HOME: directory, DROVER_STATE_DIR: state };

  const spawnCoordinator = (): Child =>
    processes.start(
      times
        ? [process.execPath, host, "coordinator", JSON.stringify({ stateDirectory: state, port, ...times })]
        : [process.execPath, bin, "coordinator", "--port", String(port)],
      { cwd: directory, env },
    );
  const startCoordinator = async (): Promise<Child> => {
    const child = spawnCoordinator();
    const open = createClient({ url, token: null });
    await patiently(async () => {
      if (!child.alive) throw new Error(`The coordinator ended: ${child.said}`);
      return open.health();
    });
    return child;
  };
  const coordinator = await startCoordinator();
  const token = readFileSync(join(state, "token"), "utf8").trim();
  const client = createClient({ url, token });

  return {
    directory,
    state,
    url,
    processes,
    client,
    token,
    coordinator,
    startCoordinator,
    spawnCoordinator,
    async startRunner(spec) {
      const profile = join(directory, "profiles", `${spec.name}.json`);
      writeFileSync(
        profile,
        JSON.stringify({
          type: "procedural",
          config: {},
          tags: spec.tags ?? [],
          require_matching_tags: spec.tags !== undefined,
        }),
      );
      const stateDirectory = join(directory, "runners", spec.name);
      const { name, slots } = spec;
      const at = spec.url ?? url;
      const words = spec.times
        ? [
            process.execPath,
            host,
            "runner",
            JSON.stringify({ profile, url: at, token, stateDirectory, name, slots, times: spec.times }),
          ]
        : [process.execPath, bin, "runner", "-x", profile, "--name", name, "--slots", String(slots)];
      const child = processes.start(words, {
        cwd: directory,
        env: { ...env, DROVER_STATE_DIR: stateDirectory, DROVER_API_URL: at, DROVER_API_KEY: token },
      });
      const row = await waitFor(async () => {
        if (!child.alive) throw new Error(`The runner ended: ${child.said}`);
        return onlineAs(name, await patiently(() => client.runners.list()));
      }, 60_000);
      if (row === null) throw new Error(`The runner ${name} did not come up: ${child.said}`);
      return { child, runner_id: row.runner_id };
    },
    async putAgent(name, changes = {}) {
      await patiently(() => client.agents.put(name, { type: "procedural", command: script, ...changes }));
    },
    marks: () => readdirSync(marks),
  };
}

function onlineAs(name: string, { items }: { items: RunnerRow[] }): RunnerRow | null {
  return items.find((row) => row.name === name && row.status === "online") ?? null;
}

/** Leaves a mark that no other execution leaves, then does as told. */
function workScript(marks: string): string {
  return `#!/bin/sh
: > "${marks}/$DROVER_RUN_ID.$DROVER_ATTEMPT.$DROVER_EXECUTION_ID"
lines=1 pause=0 stay=0
while [ $# -gt 0 ]; do
  case $1 in
    --deaf) trap '' TERM; shift ;;
    --lines) lines=$2; shift 2 ;;
    --pause) pause=$2; shift 2 ;;
    --stay) stay=$2; shift 2 ;;
    *) echo "unknown $1" >&2; exit 2 ;;
  esac
done
i=1
while [ $i -le $lines ]; do
  echo "line $i"
  i=$((i + 1))
  [ $pause = 0 ] || sleep $pause
done
# again and again: a deaf one outlives the death of its sleep
while [ $stay != 0 ]; do sleep $stay; done
`;
}

/** One that was free a moment ago: it has to be the same before and after a restart. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      // a TCP server's address is never a string
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
