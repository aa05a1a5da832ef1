import { randomBytes } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { openPostgresStore } from "../src/record/postgres/open.ts";
import { ownedFolder } from "./dispatch/children.ts";
import { droverStart } from "./dispatch/drover-starts.ts";
import { droverIntake, droverSide, storeIntake } from "./dispatch/drover-sides.ts";
import { startCoordinator, startDrover, writeDefinitions } from "./dispatch/drover.ts";
import { idleMemory } from "./dispatch/memory.ts";
import type { Intake, Side } from "./dispatch/side.ts";
import { type StartWay, submitToStart } from "./dispatch/submit-to-start.ts";
import { batchSubmits, singleSubmits } from "./dispatch/submits.ts";
import { listenForTold, type Told } from "./dispatch/tell.ts";
import { throughput } from "./dispatch/throughput.ts";
import { type Server, startServer } from "./fleet/postgres.ts";
import { bossWorker, openBossIntake, openBossSide } from "./peers/boss.ts";
import { graphileWorker, openGraphileIntake, openGraphileSide } from "./peers/graphile.ts";
import { machine, runBench, loadNow, roundsOf, wants } from "./run-bench.ts";

const [, , benchFolder = ""] = process.argv;
const root = dirname(benchFolder);
const rounds = roundsOf(5);
const durability = "yes: the same PostgreSQL";
const secret = randomBytes(32).toString("hex");

/** Drover on PostgreSQL beside the queues that use one, all on the same server, each in a database of its own. */
async function main(): Promise<void> {
  const place = ownedFolder(mkdtempSync(join(tmpdir(), "drover-bench-")));
  let server: Server;
  try {
    server = await startServer(root);
  } catch (error) {
    process.stdout.write(
      `There is no PostgreSQL here that could be started, so nothing of this can be measured. ` +
        `(Debian: apt-get install postgresql; macOS: brew install postgresql; \`npm test\` brings one along.)\n` +
        `${error instanceof Error ? error.message : String(error)}\n`,
    );
    return;
  }
  process.stdout.write(`${machine()}\n${server.about}\n`);
  const toldPath = join(place, "told.sock");
  const told = await listenForTold(toldPath);
  if (["memory", "submit", "rate"].some(wants)) await workedOff(server, place, told, toldPath);
  if (["singles", "batch"].some(wants)) await takenIn(server, place, toldPath);
  process.stdout.write(`\nLoad at the end: ${loadNow()}\n`);
  told.close();
  await server.stop();
}

async function workedOff(server: Server, place: string, told: Told, toldPath: string): Promise<void> {
  const drover = await startDrover(root, place, toldPath, { url: await server.createDatabase(), secret });
  // before there is anybody else whom the server works for
  if (wants("memory")) await idleMemory(drover, "PostgreSQL", server.cpuMs);
  const sides: Side[] = [
    droverSide(drover, durability, server.cpuMs),
    await openBossSide(benchFolder, await server.createDatabase(), toldPath, server.cpuMs),
    await openGraphileSide(benchFolder, await server.createDatabase(), toldPath, server.cpuMs),
  ];
  if (wants("submit")) {
    const peers = await Promise.all(sides.slice(1).map((side) => startOf(side, told)));
    await submitToStart([droverStart(drover, told, durability), ...peers], {
      title: "Submit to start",
      rounds,
      seconds: 90,
      samples: 100,
    });
  }
  if (wants("rate")) await throughput(sides, told, rounds, 2000);
  for (const side of sides) await side.close();
}

async function startOf(side: Side, told: Told): Promise<StartWay> {
  const [caller] = await side.callers(1);
  return { ...side, submit: side.submitSoon ?? caller!.submit, reached: told.started };
}

/** With nobody there who would work it off. */
async function takenIn(server: Server, place: string, toldPath: string): Promise<void> {
  writeDefinitions(root, place, toldPath);
  const database = { url: await server.createDatabase(), secret };
  const coordinator = await startCoordinator(root, place, "intake", database);
  const http = droverIntake(coordinator, durability, coordinator.stop);
  const store = storeIntake(
    await openPostgresStore({ url: await server.createDatabase(), secret: Buffer.from(secret, "hex") }),
    durability,
  );
  const peers: Intake[] = [
    await openBossIntake(benchFolder, await server.createDatabase()),
    await openGraphileIntake(benchFolder, await server.createDatabase()),
  ];
  if (wants("singles")) await singleSubmits({ ours: [http, store], peers, rounds, goal: ">= 5x" });
  if (wants("batch")) await batchSubmits({ ours: [store], peers, rounds, goal: ">= 1x" });
  for (const intake of [http, store, ...peers]) await intake.close();
}

runBench(main, {
  "boss-worker": (options) => bossWorker(benchFolder, options),
  "graphile-worker": (options) => graphileWorker(benchFolder, options),
});
