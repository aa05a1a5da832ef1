import { createRequire } from "node:module";
import { join } from "node:path";
import { announce, type Child, startRole } from "./children.ts";
import { teller } from "./tell.ts";
import { spawn } from "node:child_process";

/** As much of BullMQ as is used here. */
interface BullQueue {
  add(name: string, data: { id: string; message: string }): Promise<unknown>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  close(): Promise<void>;
}
interface BullMq {
  Queue: new (name: string, options: object) => BullQueue;
  Worker: new (
    name: string,
    work: (job: { data: { id: string } }) => Promise<void>,
    options: object,
  ) => {
    waitUntilReady(): Promise<unknown>;
    on(event: "completed", listener: (job: { data: { id: string } }) => void): void;
  };
}

export interface Bull {
  version: string;
  workerPid: number;
  /** Does nothing, or spawns /bin/true. */
  add(queue: "noop" | "true", id: string): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  close(): Promise<void>;
}

/** Producer here, worker in a process of its own: as Drover's submitter, runner and coordinator are. */
export async function openBull(benchFolder: string, port: number, told: string): Promise<Bull> {
  const { Queue, version } = loadBull(benchFolder);
  const worker: Child = await startRole("bull-worker", { port, told });
  const queues = { noop: new Queue("noop", connectionTo(port)), true: new Queue("true", connectionTo(port)) };
  return {
    version,
    workerPid: worker.pid,
    async add(queue, id) {
      await queues[queue].add("run", { id, message: "Hello World" });
    },
    pause: () => queues.noop.pause(),
    resume: () => queues.noop.resume(),
    async close() {
      await Promise.all([queues.noop.close(), queues.true.close()]);
      await worker.stop();
    },
  };
}

export async function bullWorker(benchFolder: string, { port, told }: { port: number; told: string }): Promise<void> {
  const { Worker } = loadBull(benchFolder);
  const tell = teller(told);
  const works = { noop: async () => undefined, true: spawnTrue };
  for (const [name, work] of Object.entries(works)) {
    const worker = new Worker(
      name,
      async ({ data }) => {
        tell("S", data.id);
        await work();
      },
      { ...connectionTo(port), concurrency: 10 },
    );
    worker.on("completed", ({ data }) => tell("F", data.id));
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

function connectionTo(port: number): { connection: object } {
  return { connection: { host: "127.0.0.1", port, maxRetriesPerRequest: null } };
}

function loadBull(benchFolder: string): BullMq & { version: string } {
  const require = createRequire(join(benchFolder, "package.json"));
  // the interface above is what we use of it
  const bull = require("bullmq") as BullMq;
  const { dependencies } = require("./package.json") as { dependencies: Record<string, string> };
  return { Queue: bull.Queue, Worker: bull.Worker, version: dependencies["bullmq"] ?? "unknown" };
}
