import pg from "pg";
import { announce, startRole } from "../dispatch/children.ts";
import { until } from "../dispatch/drover.ts";
import { cpuMs } from "../dispatch/processes.ts";
import { type Intake, payload, sharedCallers, type Side } from "../dispatch/side.ts";
import { teller } from "../dispatch/tell.ts";
import { loadPeer } from "./load.ts";

interface Job {
  id: string;
  message: string;
}

/** As much of pg-boss as is used here. */
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
 * Ten workers, each of which takes up to 100 jobs at a time and goes on at once while there are as many: one by one they
 * would wait for their next poll after every job. Half a second between polls is the least there is.
 */
const working = { localConcurrency: 10, batchSize: 100, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };

/**
 * Their docs offer LISTEN/NOTIFY for low latency; it makes each submit dearer and wakes all ten. So there are two
 * queues: one without, for how many, and one with it, for how soon.
 */
const queues = { noop: { notify: false }, soon: { notify: true } };

interface BossIntake extends Intake {
  submitSoon(id: string): Promise<void>;
}

export async function openBossIntake(benchFolder: string, url: string): Promise<BossIntake> {
  const { version, PgBoss } = loadPeer<PgBossModule>(benchFolder, "pg-boss");
  const boss = await startBoss(new PgBoss({ connectionString: url, max: 32 }));
  for (const [name, options] of Object.entries(queues)) await boss.createQueue(name, options);
  return {
    name: "boss",
    label: `pg-boss ${version}`,
    durability: "yes: the same PostgreSQL",
    callers: sharedCallers(async (id) => void (await boss.send("noop", payload(id)))),
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

/** Producer here, worker in a process of its own. */
export async function openBossSide(
  benchFolder: string,
  url: string,
  told: string,
  serverCpuMs: () => number,
): Promise<Side> {
  const intake = await openBossIntake(benchFolder, url);
  const worker = await startRole("boss-worker", { url, told });
  const look = new pg.Client({ connectionString: url });
  await look.connect();
  return {
    ...intake,
    pause: async () => void (await worker.ask("pause")),
    resume: async () => void (await worker.ask("resume")),
    allEnded: () =>
      until("the end of all jobs", async () => {
        const { rowCount } = await look.query(
          "select 1 from pgboss.job where name = 'noop' and state < 'completed' limit 1",
        );
        return rowCount === 0;
      }),
    cpuMs: () => cpuMs([worker.pid]) + serverCpuMs(),
    async close() {
      await worker.stop();
      await look.end();
      await intake.close();
    },
  };
}

export async function bossWorker(benchFolder: string, { url, told }: { url: string; told: string }): Promise<void> {
  const { PgBoss } = loadPeer<PgBossModule>(benchFolder, "pg-boss");
  const tell = teller(told);
  const boss = await startBoss(new PgBoss({ connectionString: url, max: 12, useListenNotify: true }));
  const work = (queue: keyof typeof queues): Promise<string> =>
    boss.work(queue, working, async (jobs) => {
      for (const { data } of jobs) tell("S", data.id);
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
