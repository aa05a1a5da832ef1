import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { CoordinatorOptions } from "../src/coordinator.ts";
import { reservePort } from "../test/reserve-port.ts";
import { createClient } from "../src/wire/client.ts";
import { startBalancer } from "./balancer.ts";
import type { Database, Tools } from "./finding.ts";
import type { Child, Processes } from "./processes.ts";
import { retryWhileUnreachable } from "./wait.ts";

export type CoordinatorTimes = Pick<
  CoordinatorOptions,
  "leaseMs" | "pollHoldMs" | "keepaliveMs" | "rescueEveryMs" | "unmatchedMs"
> & {
  /** Speed and start time of the trigger clock. */
  trigger?: { speed: number; from: number };
};

/** A coordinator that the caller can kill and start again on the same port and state. */
export interface CoordinatorSlot {
  /** The coordinator's own address, not the balancer's. */
  url: string;
  /** Its state directory, as a path on this host. */
  readonly state: string;
  /** The process started last. */
  readonly child: Child;
  start(): Promise<Child>;
  /** Starts the coordinator without waiting until it answers. */
  spawn(): Child;
}

/** The database and secret that a fleet's coordinators share. */
export interface FleetAccess {
  url: string;
  secret: Buffer;
}

export interface Coordinators {
  /** The address for clients and runners. */
  url: string;
  slots: readonly CoordinatorSlot[];
  /** A port for a proxy between a runner and the coordinators, listed among their public URLs. */
  proxyPort: number;
  /** null if the record is a SQLite file in the only coordinator's state directory. */
  fleet: FleetAccess | null;
  close(): Promise<void>;
}

interface Options {
  tools: Tools;
  /** null for the command line's defaults. */
  times: CoordinatorTimes | null;
  directory: string;
  processes: Processes;
  database: Database | null;
  count: number;
  smallDisk?: string | undefined;
}

export async function openCoordinators({ database, count, ...options }: Options): Promise<Coordinators> {
  const [balancerPort, proxyPort] = [await reservePort(), await reservePort()];
  const publicUrls = [balancerPort, proxyPort].map((port) => `http://127.0.0.1:${port}`);
  if (database === null) {
    const { slot } = await makeCoordinatorSlot({ ...options, name: "state", fleet: null, publicUrls });
    await slot.start();
    return { url: slot.url, slots: [slot], proxyPort, fleet: null, close: async () => undefined };
  }
  const fleet = { url: database.url, secret: randomBytes(32) };
  const created: Awaited<ReturnType<typeof makeCoordinatorSlot>>[] = [];
  while (created.length < count)
    created.push(await makeCoordinatorSlot({ ...options, name: `state-${created.length}`, fleet, publicUrls }));
  // In parallel, so that all of them find the database empty.
  await Promise.all(created.map(({ slot }) => slot.start()));
  const balancer = await startBalancer(
    balancerPort,
    created.map(({ port }) => port),
  );
  return { url: balancer.url, slots: created.map(({ slot }) => slot), proxyPort, fleet, close: () => balancer.close() };
}

type CoordinatorSlotOptions = Omit<Options, "database" | "count"> & {
  name: string;
  fleet: FleetAccess | null;
  publicUrls: readonly string[];
};

async function makeCoordinatorSlot({
  tools,
  times,
  directory,
  processes,
  name,
  fleet,
  publicUrls,
  smallDisk,
}: CoordinatorSlotOptions) {
  const state = join(directory, name);
  const port = await reservePort();
  const url = `http://127.0.0.1:${port}`;
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: directory,
    DROVER_TRUST: directory,
    DROVER_STATE_DIR: state,
    ...(fleet ? { DATABASE_URL: fleet.url, DROVER_SECRET: fleet.secret.toString("hex") } : {}),
  };
  const args = times
    ? [tools.host, "coordinator", JSON.stringify({ stateDirectory: state, port, publicUrls, ...times })]
    : [
        join(tools.root, "bin", "drover.js"),
        "coordinator",
        "--port",
        String(port),
        ...publicUrls.flatMap((item) => ["--public-url", item]),
      ];
  const commandPrefix = smallDisk === undefined ? [] : createSmallDiskPrefix(state, smallDisk);
  let child: Child | null = null;
  const spawn = (): Child =>
    (child = processes.start([...commandPrefix, process.execPath, ...args], { cwd: directory, env }));
  const slot: CoordinatorSlot = {
    url,
    get state() {
      return smallDisk === undefined ? state : `/proc/${slot.child.pid}/root${state}`;
    },
    get child() {
      return (child ??= spawn());
    },
    spawn,
    async start() {
      const started = spawn();
      await waitUntilAnswering(url, started);
      return started;
    },
  };
  return { slot, port };
}

/** A command prefix that mounts a private tmpfs at `path`. `size` is in mount's syntax. */
export function createSmallDiskPrefix(path: string, size: string, mode = "700"): string[] {
  const script = `mkdir -p '${path}' && mount -t tmpfs -o size=${size},mode=${mode} none '${path}' && exec "$@"`;
  return ["unshare", ...(process.getuid?.() === 0 ? [] : ["-Ur"]), "-m", "sh", "-c", script, "sh"];
}

export async function waitUntilAnswering(url: string, child: Child): Promise<void> {
  const open = createClient({ url, token: null });
  await retryWhileUnreachable(async () => {
    if (!child.alive) throw new Error(`The coordinator ended: ${child.output}`);
    return open.health();
  });
}
