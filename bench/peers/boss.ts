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

/** The part of pg-boss used here. */
interface Boss {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: object): Promise<void>;
  createQueue(name: string, options?: object): Promise<void>;
  send(name: string, data: Job): Promise<string | null>;
  insert(name: string, jobs: { data: Job }[]): Promise<unknown>;
  work(name: string, options: object, handler: (jobs: { data: Job }[]) => Promise<void>): Promise<string>;
  offWork(name: string, options: object): Promise<void>;
}
interface PgBossModule {
  PgBoss: new (options: object) => Boss;
}

/**
 * Ten workers that each take up to 100 jobs and continue at once while batches are full. With single jobs they would wait
 * for the next poll after each job. Half a second is the minimum poll interval.
 */
const workOptions = { localConcurrency: 10, batchSize: 100, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };

/**
 * The docs of pg-boss offer LISTEN/NOTIFY for low latency, but it makes each submit more expensive and wakes all ten workers. So
 * there are two queues: one without it for throughput, one with it for latency.
 */
const queues = { noop: { notify: false }, soon: { notify: true } };

interface BossIntake extends Intake {
  submitSoon(id: string): Promise<void>;
}

export async function openBossIntake(benchDirectory: string, url: string): Promise<BossIntake> {
  const { version, PgBoss } = loadPeer<PgBossModule>(benchDirectory, "pg-boss");
  const boss = await startBoss(new PgBoss({ connectionString: url, max: 32 }));
  for (const [name, options] of Object.entries(queues)) await boss.createQueue(name, options);
  return {
    name: "boss",
    label: `pg-boss ${version}`,
    durability: "yes: the same PostgreSQL",
    callers: createSharedCallers(async (id) => void (await boss.send("noop", payload(id)))),
    submitSoon: async (id) => void (await boss.send("soon", payload(id))),
    async batch(runs) {
      await boss.insert(
        "noop",
        Array.from({ length: runs }, (_, no) => ({ data: payload(`b${no}`) })),
      );
    },
    close: () => boss.stop({ graceful: false }),
  };
}

/** The producer runs in this process, the worker in its own. */
export async function openBossSide(
  benchDirectory: string,
  url: string,
  jobTimesPath: string,
  serverCpuMs: () => number,
): Promise<Side> {
  const intake = await openBossIntake(benchDirectory, url);
  const worker = await startRole("boss-worker", { url, jobTimesPath });
  const pollClient = new pg.Client({ connectionString: url });
  await pollClient.connect();
  return {
    ...intake,
    pause: async () => void (await worker.ask("pause")),
    resume: async () => void (await worker.ask("resume")),
    allEnded: () =>
      waitUntil("the end of all jobs", async () => {
        const { rowCount } = await pollClient.query(
          "select 1 from pgboss.job where name = 'noop' and state < 'completed' limit 1",
        );
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

export async function runBossWorker(
  benchDirectory: string,
  { url, jobTimesPath }: { url: string; jobTimesPath: string },
): Promise<void> {
  const { PgBoss } = loadPeer<PgBossModule>(benchDirectory, "pg-boss");
  const report = createJobReporter(jobTimesPath);
  const boss = await startBoss(new PgBoss({ connectionString: url, max: 12, useListenNotify: true }));
  const work = (queue: keyof typeof queues): Promise<string> =>
    boss.work(queue, workOptions, async (jobs) => {
      for (const { data } of jobs) report("S", data.id);
    });
  await work("noop");
  await work("soon");
  announce("ready", { pause: () => boss.offWork("noop", { wait: true }), resume: () => work("noop") });
}

async function startBoss(boss: Boss): Promise<Boss> {
  boss.on("error", (error) => process.stderr.write(`pg-boss: ${error.stack}\n`));
  await boss.start();
  return boss;
}
