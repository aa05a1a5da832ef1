import { randomBytes } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { openPostgresStore } from "../src/record/postgres/open.ts";
import { ownedDirectory } from "./dispatch/children.ts";
import { createStartVariant } from "./dispatch/drover-starts.ts";
import { createDroverIntake, createDroverSide, createStoreIntake } from "./dispatch/drover-sides.ts";
import { startCoordinator, startDrover, writeDefinitions } from "./dispatch/drover.ts";
import { measureIdleMemory } from "./dispatch/memory.ts";
import type { Intake, Side } from "./dispatch/side.ts";
import { type StartVariant, measureSubmitToStart } from "./dispatch/submit-to-start.ts";
import { measureBatchSubmits, measureSingleSubmits } from "./dispatch/submits.ts";
import { listenForJobTimes, type JobTimes } from "./dispatch/job-times.ts";
import { measureThroughput } from "./dispatch/throughput.ts";
import { type Server, startServer } from "./fleet/postgres.ts";
import { runBossWorker, openBossIntake, openBossSide } from "./peers/boss.ts";
import { runGraphileWorker, openGraphileIntake, openGraphileSide } from "./peers/graphile.ts";
import { describeMachine, runBench, describeLoad, chooseRounds, isRequested } from "./run-bench.ts";

const [, , benchDirectory = ""] = process.argv;
const root = dirname(benchDirectory);
const rounds = chooseRounds(5);
const durability = "yes: the same PostgreSQL";
const secret = randomBytes(32).toString("hex");

/** Compares Drover on PostgreSQL with the queues that use it, all on the same server, each in its own database. */
async function main(): Promise<void> {
  const directory = ownedDirectory(mkdtempSync(join(tmpdir(), "drover-bench-")));
  let server: Server;
  try {
    server = await startServer(root);
  } catch (error) {
    process.stdout.write(
      `Cannot start PostgreSQL, so this bench is skipped. ` +
        `(Debian: apt-get install postgresql; macOS: brew install postgresql; \`npm test\` installs one.)\n` +
        `${error instanceof Error ? error.message : String(error)}\n`,
    );
    return;
  }
  process.stdout.write(`${describeMachine()}\n${server.about}\n`);
  const jobTimesPath = join(directory, "job-times.sock");
  const jobTimes = await listenForJobTimes(jobTimesPath);
  if (["memory", "submit", "rate"].some(isRequested)) await measureWork(server, directory, jobTimes, jobTimesPath);
  if (["singles", "batch"].some(isRequested)) await measureIntake(server, directory, jobTimesPath);
  process.stdout.write(`\nLoad at the end: ${describeLoad()}\n`);
  jobTimes.close();
  await server.stop();
}

async function measureWork(server: Server, directory: string, jobTimes: JobTimes, jobTimesPath: string): Promise<void> {
  const drover = await startDrover(root, directory, jobTimesPath, { url: await server.createDatabase(), secret });
  // Before anyone else uses the server.
  if (isRequested("memory")) await measureIdleMemory(drover, "PostgreSQL", server.cpuMs);
  const sides: Side[] = [
    createDroverSide(drover, durability, server.cpuMs),
    await openBossSide(benchDirectory, await server.createDatabase(), jobTimesPath, server.cpuMs),
    await openGraphileSide(benchDirectory, await server.createDatabase(), jobTimesPath, server.cpuMs),
  ];
  if (isRequested("submit")) {
    const peers = await Promise.all(sides.slice(1).map((side) => toStartVariant(side, jobTimes)));
    await measureSubmitToStart([createStartVariant(drover, jobTimes, durability), ...peers], {
      title: "Submit to start",
      rounds,
      seconds: 90,
      samples: 100,
    });
  }
  if (isRequested("rate")) await measureThroughput(sides, jobTimes, rounds, 2000);
  for (const side of sides) await side.close();
}

async function toStartVariant(side: Side, jobTimes: JobTimes): Promise<StartVariant> {
  const [caller] = await side.callers(1);
  return { ...side, submit: side.submitSoon ?? caller!.submit, reached: jobTimes.started };
}

/** Measures submits only, without workers. */
async function measureIntake(server: Server, directory: string, jobTimesPath: string): Promise<void> {
  writeDefinitions(root, directory, jobTimesPath);
  const database = { url: await server.createDatabase(), secret };
  const coordinator = await startCoordinator(root, directory, "intake", database);
  const http = createDroverIntake(coordinator, durability, coordinator.stop);
  const store = createStoreIntake(
    await openPostgresStore({ url: await server.createDatabase(), secret: Buffer.from(secret, "hex") }),
    durability,
  );
  const peers: Intake[] = [
    await openBossIntake(benchDirectory, await server.createDatabase()),
    await openGraphileIntake(benchDirectory, await server.createDatabase()),
  ];
  if (isRequested("singles")) await measureSingleSubmits({ ours: [http, store], peers, rounds, goal: ">= 5x" });
  if (isRequested("batch")) await measureBatchSubmits({ ours: [store], peers, rounds, goal: ">= 1x" });
  for (const intake of [http, store, ...peers]) await intake.close();
}

runBench(main, {
  "boss-worker": (options) => runBossWorker(benchDirectory, options),
  "graphile-worker": (options) => runGraphileWorker(benchDirectory, options),
});
