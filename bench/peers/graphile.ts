import pg from "pg";
import { announce, startRole } from "../dispatch/children.ts";
import { waitUntil } from "../dispatch/drover.ts";
import { readCpuMs } from "../dispatch/processes.ts";
import { type Intake, payload, createSharedCallers, type Side } from "../dispatch/side.ts";
import { createJobReporter } from "../dispatch/job-times.ts";
import { loadPeer } from "./load.ts";

interface Job {
  id: string;
  message: string;
}

/** The part of graphile-worker used here. */
interface WorkerUtils {
  addJob(task: string, payload: Job): Promise<unknown>;
  addJobs(jobs: { identifier: string; payload: Job }[]): Promise<unknown>;
  migrate(): Promise<void>;
  release(): Promise<void>;
}
interface GraphileWorker {
  Logger: new (factory: () => () => void) => object;
  makeWorkerUtils(options: object): Promise<WorkerUtils>;
  run(options: object): Promise<{ stop(): Promise<void> }>;
}

/** The settings of their performance page, with our number of slots. */
const workerSettings = {
  concurrentJobs: 10,
  maxPoolSize: 12,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};

export async function openGraphileIntake(benchDirectory: string, url: string): Promise<Intake> {
  const { version, makeWorkerUtils, Logger } = loadPeer<GraphileWorker>(benchDirectory, "graphile-worker");
  const utils = await makeWorkerUtils({ connectionString: url, logger: createSilentLogger(Logger) });
  await utils.migrate();
  return {
    name: "graphile",
    label: `graphile-worker ${version}`,
    durability: "yes: the same PostgreSQL",
    callers: createSharedCallers(async (id) => void (await utils.addJob("noop", payload(id)))),
    async batch(runs) {
      await utils.addJobs(
        Array.from({ length: runs }, (_, no) => ({ identifier: "noop", payload: payload(`b${no}`) })),
      );
    },
    close: async () => utils.release(),
  };
}

/** The producer runs in this process, the worker in its own. */
export async function openGraphileSide(
  benchDirectory: string,
  url: string,
  jobTimesPath: string,
  serverCpuMs: () => number,
): Promise<Side> {
  const intake = await openGraphileIntake(benchDirectory, url);
  const worker = await startRole("graphile-worker", { url, jobTimesPath });
  const pollClient = new pg.Client({ connectionString: url });
  await pollClient.connect();
  return {
    ...intake,
    pause: async () => void (await worker.ask("pause")),
    resume: async () => void (await worker.ask("resume")),
    allEnded: () =>
      waitUntil("the end of all jobs", async () => {
        // Finished jobs are removed.
        const { rowCount } = await pollClient.query("select 1 from graphile_worker._private_jobs limit 1");
        return rowCount === 0;
      }),
    cpuMs: () => readCpuMs([worker.pid]) + serverCpuMs(),
    async close() {
      await worker.stop();
      await pollClient.end();
      await intake.close();
    },
  };
}

export async function runGraphileWorker(
  benchDirectory: string,
  { url, jobTimesPath }: { url: string; jobTimesPath: string },
): Promise<void> {
  const { run, Logger } = loadPeer<GraphileWorker>(benchDirectory, "graphile-worker");
  const report = createJobReporter(jobTimesPath);
  const start = (): Promise<{ stop(): Promise<void> }> =>
    run({
      preset: { worker: { connectionString: url, logger: createSilentLogger(Logger), ...workerSettings } },
      taskList: { noop: async ({ id }: Job) => report("S", id) },
      noHandleSignals: true,
    });
  let runner = await start();
  announce("ready", {
    pause: () => runner.stop(),
    resume: async () => {
      runner = await start();
    },
  });
}

/** Silences the log line per job. */
function createSilentLogger(Logger: GraphileWorker["Logger"]): object {
  return new Logger(() => () => undefined);
}
