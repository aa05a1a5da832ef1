import { spawn } from "node:child_process";
import { join } from "node:path";
import { announce, startRole } from "../dispatch/children.ts";
import { waitUntil } from "../dispatch/drover.ts";
import { readCpuMs } from "../dispatch/processes.ts";
import { type Intake, payload, createSharedCallers, type Side } from "../dispatch/side.ts";
import { createJobReporter } from "../dispatch/job-times.ts";
import { loadPeer } from "./load.ts";
import { type Durability, startRedis } from "./redis.ts";

interface Job {
  id: string;
  message: string;
}

/** The part of BullMQ used here. */
interface BullQueue {
  add(name: string, data: Job): Promise<unknown>;
  addBulk(jobs: { name: string; data: Job }[]): Promise<unknown>;
  getJobCounts(...states: string[]): Promise<Record<string, number>>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  close(): Promise<void>;
}
interface BullMq {
  Queue: new (name: string, options: object) => BullQueue;
  Worker: new (
    name: string,
    work: (job: { data: Job }) => Promise<void>,
    options: object,
  ) => {
    waitUntilReady(): Promise<unknown>;
    on(event: "completed", listener: (job: { data: Job }) => void): void;
  };
}

/** The queue `idle` has no worker. */
type QueueName = "noop" | "true" | "idle";

export interface Bull extends Side {
  /** The server's name to print. */
  server: string;
  add(queue: QueueName, id: string): Promise<void>;
  addMany(queue: QueueName, jobs: number): Promise<void>;
}

const durabilities: Record<Durability, string> = {
  always: "yes: appendfsync always",
  snapshots: "no: RDB snapshots only",
};

/**
 * The producer runs in this process, worker and Redis in their own, like Drover's submitter, runner and coordinator.
 * Returns null if redis-server is not installed.
 */
export async function openBull(
  benchDirectory: string,
  directory: string,
  durability: Durability,
  jobTimesPath: string,
): Promise<Bull | null> {
  const redis = await startRedis(join(directory, `redis-${durability}`), durability);
  if (redis === null) return null;
  const { Queue, version } = loadPeer<BullMq>(benchDirectory, "bullmq");
  const worker = await startRole("bull-worker", { port: redis.port, jobTimesPath });
  const queues = {
    noop: new Queue("noop", createConnection(redis.port)),
    true: new Queue("true", createConnection(redis.port)),
    idle: new Queue("idle", createConnection(redis.port)),
  };
  const add: Bull["add"] = async (queue, id) => void (await queues[queue].add("run", payload(id)));
  const addMany: Bull["addMany"] = async (queue, runs) => {
    await queues[queue].addBulk(Array.from({ length: runs }, (_, no) => ({ name: "run", data: payload(`b${no}`) })));
  };
  return {
    name: `bull-${durability}`,
    label: `BullMQ ${version}`,
    durability: durabilities[durability],
    server: `Redis ${redis.version}`,
    add,
    addMany,
    callers: createSharedCallers((id) => add("noop", id)),
    batch: (runs) => addMany("noop", runs),
    pause: () => queues.noop.pause(),
    resume: () => queues.noop.resume(),
    allEnded: () =>
      waitUntil("the end of all jobs", async () => {
        const open = await queues.noop.getJobCounts("waiting", "active", "paused", "prioritized", "delayed");
        return Object.values(open).every((count) => count === 0);
      }),
    cpuMs: () => readCpuMs([worker.pid, redis.pid]),
    async close() {
      await Promise.all(Object.values(queues).map((queue) => queue.close()));
      await worker.stop();
      await redis.stop();
    },
  };
}

/** The queue without a worker. */
export function createBullIntake(bull: Bull): Intake {
  return {
    ...bull,
    callers: createSharedCallers((id) => bull.add("idle", id)),
    batch: (runs) => bull.addMany("idle", runs),
  };
}

export async function runBullWorker(
  benchDirectory: string,
  { port, jobTimesPath }: { port: number; jobTimesPath: string },
): Promise<void> {
  const { Worker } = loadPeer<BullMq>(benchDirectory, "bullmq");
  const report = createJobReporter(jobTimesPath);
  const works = { noop: async () => undefined, true: spawnTrue };
  for (const [name, work] of Object.entries(works)) {
    const worker = new Worker(
      name,
      async ({ data }) => {
        report("S", data.id);
        await work();
      },
      { ...createConnection(port), concurrency: 10 },
    );
    worker.on("completed", ({ data }) => report("F", data.id));
    await worker.waitUntilReady();
  }
  announce("ready");
}

function spawnTrue(): Promise<undefined> {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/true", [], { stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.resume();
    child.stderr.resume();
    child.once("error", reject);
    child.once("close", () => resolve(undefined));
  });
}

function createConnection(port: number): { connection: object } {
  return { connection: { host: "127.0.0.1", port, maxRetriesPerRequest: null } };
}
