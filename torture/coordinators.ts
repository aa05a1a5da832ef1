import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { CoordinatorOptions } from "../src/coordinator.ts";
import { reservePort } from "../test/reserve-port.ts";
import { createClient } from "../src/wire/client.ts";
import { startBalancer } from "./balancer.ts";
import type { Database, Tools } from "./finding.ts";
import type { Child, Processes } from "./processes.ts";
import { patiently } from "./wait.ts";

export type CoordinatorTimes = Pick<
  CoordinatorOptions,
  "leaseMs" | "pollHoldMs" | "keepaliveMs" | "rescueEveryMs" | "unmatchedMs"
> & {
  /** How fast the clock of triggers goes, and since when. */
  trigger?: { speed: number; from: number };
};

/** A coordinator's place: to kill the one that has it, and to start another there, is the caller's. */
export interface Seat {
  /** Past any balancer. */
  url: string;
  /** Its state directory, as seen from here. */
  readonly state: string;
  /** Whoever was started last. */
  readonly child: Child;
  start(): Promise<Child>;
  /** The same, but without waiting until it answers. */
  spawn(): Child;
}

/** Where a fleet's record lies, and what its coordinators share. */
export interface Fleet {
  url: string;
  secret: Buffer;
}

export interface Coordinators {
  /** Where clients and runners go. */
  url: string;
  seats: readonly Seat[];
  /** A port for something that stands between a runner and them: they answer for it. */
  proxyPort: number;
  /** null: the record is a SQLite file in the only seat's state directory. */
  fleet: Fleet | null;
  close(): Promise<void>;
}

interface Options {
  tools: Tools;
  /** null: the command line's own. */
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
    const { seat } = await makeSeat({ ...options, name: "state", fleet: null, publicUrls });
    await seat.start();
    return { url: seat.url, seats: [seat], proxyPort, fleet: null, close: async () => undefined };
  }
  const fleet = { url: database.url, secret: randomBytes(32) };
  const made: Awaited<ReturnType<typeof makeSeat>>[] = [];
  while (made.length < count)
    made.push(await makeSeat({ ...options, name: `state-${made.length}`, fleet, publicUrls }));
  // at once: they also find the database empty together
  await Promise.all(made.map(({ seat }) => seat.start()));
  const balancer = await startBalancer(
    balancerPort,
    made.map(({ port }) => port),
  );
  return { url: balancer.url, seats: made.map(({ seat }) => seat), proxyPort, fleet, close: () => balancer.close() };
}

type SeatOptions = Omit<Options, "database" | "count"> & {
  name: string;
  fleet: Fleet | null;
  publicUrls: readonly string[];
};

async function makeSeat({ tools, times, directory, processes, name, fleet, publicUrls, smallDisk }: SeatOptions) {
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
  const words = times
    ? [tools.host, "coordinator", JSON.stringify({ stateDirectory: state, port, publicUrls, ...times })]
    : [
        join(tools.root, "bin", "drover.js"),
        "coordinator",
        "--port",
        String(port),
        ...publicUrls.flatMap((one) => ["--public-url", one]),
      ];
  const before = smallDisk === undefined ? [] : onSmallDisk(state, smallDisk);
  let child: Child | null = null;
  const spawn = (): Child =>
    (child = processes.start([...before, process.execPath, ...words], { cwd: directory, env }));
  const seat: Seat = {
    url,
    get state() {
      return smallDisk === undefined ? state : `/proc/${seat.child.pid}/root${state}`;
    },
    get child() {
      return (child ??= spawn());
    },
    spawn,
    async start() {
      const started = spawn();
      await answering(url, started);
      return started;
    },
  };
  return { seat, port };
}

/** Words before a command that give it a disk of its own at a path, of a size as mount takes it. Nobody else sees it. */
export function onSmallDisk(path: string, size: string, mode = "700"): string[] {
  const script = `mkdir -p '${path}' && mount -t tmpfs -o size=${size},mode=${mode} none '${path}' && exec "$@"`;
  return ["unshare", ...(process.getuid?.() === 0 ? [] : ["-Ur"]), "-m", "sh", "-c", script, "sh"];
}

export async function answering(url: string, child: Child): Promise<void> {
  const open = createClient({ url, token: null });
  await patiently(async () => {
    if (!child.alive) throw new Error(`The coordinator ended: ${child.said}`);
    return open.health();
  });
}
