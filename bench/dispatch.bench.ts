import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { openStore } from "../src/record/open.ts";
import { ownedDirectory } from "./dispatch/children.ts";
import { createResultVariant, createStartVariant } from "./dispatch/drover-starts.ts";
import { createDroverIntake, createDroverSide, createStoreIntake } from "./dispatch/drover-sides.ts";
import { startCoordinator, startDrover, waitForAllEnded } from "./dispatch/drover.ts";
import { measureGrowth } from "./dispatch/growth.ts";
import { measureIdleMemory } from "./dispatch/memory.ts";
import { noDatabaseRole, measurePostRuns } from "./dispatch/post-runs.ts";
import { measureSse } from "./dispatch/sse.ts";
import { oneWritePerEventRole, sseReadersRole } from "./dispatch/sse-roles.ts";
import { measureStopToDead } from "./dispatch/stop-to-dead.ts";
import { measureSubmitToStart } from "./dispatch/submit-to-start.ts";
import { measureBatchSubmits, measureSingleSubmits } from "./dispatch/submits.ts";
import { listenForJobTimes, type JobTimes } from "./dispatch/job-times.ts";
import { measureThroughput } from "./dispatch/throughput.ts";
import { type Bull, createBullIntake, runBullWorker, openBull } from "./peers/bull.ts";
import { describeLoad, describeMachine, chooseRounds, runBench, isRequested } from "./run-bench.ts";

const [, , benchDirectory = ""] = process.argv;
const root = dirname(benchDirectory);
const rounds = chooseRounds(5);
const durability = "yes: SQLite, synchronous=FULL";

/** Compares Drover on SQLite with BullMQ on Redis, and measures Drover by itself. */
async function main(): Promise<void> {
  const directory = ownedDirectory(mkdtempSync(join(tmpdir(), "drover-bench-")));
  const jobTimesPath = join(directory, "job-times.sock");
  const jobTimes = await listenForJobTimes(jobTimesPath);
  const always = await openBull(benchDirectory, directory, "always", jobTimesPath);
  const snapshots = await openBull(benchDirectory, directory, "snapshots", jobTimesPath);
  const bullVersions = always && snapshots ? [always, snapshots] : [];
  process.stdout.write(`${describeMachine()}\n`);
  process.stdout.write(
    always
      ? `SQLite synchronous=FULL; ${always.label} on ${always.server}, once durable and once not\n`
      : "Skipping BullMQ: redis-server is not installed (Debian: apt-get install redis-server; macOS: brew install redis)\n",
  );
  await measureWork(directory, jobTimes, jobTimesPath, bullVersions);
  if (["singles", "batch"].some(isRequested)) await measureIntake(directory, bullVersions);
  for (const bull of bullVersions) await bull.close();
  if (isRequested("post")) await measurePostRuns(root, directory, rounds, 8000);
  if (isRequested("sse")) await measureSse(root, directory, jobTimes, jobTimesPath, rounds);
  if (isRequested("growth")) await measureGrowth(directory, rounds, 400);
  process.stdout.write(`\nLoad at the end: ${describeLoad()}\n`);
  jobTimes.close();
}

async function measureWork(
  directory: string,
  jobTimes: JobTimes,
  jobTimesPath: string,
  bullVersions: readonly Bull[],
): Promise<void> {
  const drover = await startDrover(root, directory, jobTimesPath);
  if (isRequested("memory")) await measureIdleMemory(drover, "SQLite");
  if (isRequested("submit")) {
    const starts = bullVersions.map((bull) => ({
      ...bull,
      submit: (id: string) => bull.add("noop", id),
      reached: jobTimes.started,
    }));
    await measureSubmitToStart([createStartVariant(drover, jobTimes, durability), ...starts], {
      title: "Submit to start",
      rounds,
      seconds: 120,
      samples: 120,
      goal: "<= 0.8x where durable",
    });
    const result = createResultVariant(drover, durability);
    const results = bullVersions.map((bull) => ({
      ...bull,
      label: `${bull.label}: until completed, the processor spawns /bin/true`,
      submit: (id: string) => bull.add("true", id),
      reached: jobTimes.finished,
    }));
    await measureSubmitToStart([result, ...results], {
      title: "Submit to the result of /bin/true",
      rounds,
      seconds: 120,
      samples: 30,
    });
    result.stop();
    await waitForAllEnded(drover);
  }
  if (isRequested("rate"))
    await measureThroughput(
      [createDroverSide(drover, durability), ...bullVersions],
      jobTimes,
      rounds,
      2000,
      ">= 1x, then 2x",
    );
  if (isRequested("stop")) await measureStopToDead(drover, directory, rounds);
  await drover.stop();
}

/** Measures submits only, without workers. */
async function measureIntake(directory: string, bullVersions: readonly Bull[]): Promise<void> {
  const coordinator = await startCoordinator(root, directory, "intake");
  const http = createDroverIntake(coordinator, durability, coordinator.stop);
  const storeDirectory = join(directory, "intake-store");
  const store = createStoreIntake(
    await openStore({ directory: storeDirectory, now: () => new Date(), createIfMissing: true }),
    durability,
  );
  const peers = bullVersions.map(createBullIntake);
  if (isRequested("singles")) await measureSingleSubmits({ ours: [http, store], peers, rounds });
  if (isRequested("batch")) await measureBatchSubmits({ ours: [http, store], peers, rounds });
  await http.close();
  await store.close();
}

runBench(main, {
  "bull-worker": (options) => runBullWorker(benchDirectory, options),
  "no-database": noDatabaseRole,
  "one-write-per-event": oneWritePerEventRole,
  "sse-readers": sseReadersRole,
});
