import { randomBytes } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ownedDirectory, startRole } from "./dispatch/children.ts";
import { startCoordinator, type Database, waitUntil, writeDefinitions } from "./dispatch/drover.ts";
import { readCpuMs, readMegabytes } from "./dispatch/processes.ts";
import { type Server, startServer } from "./fleet/postgres.ts";
import { median, printTable } from "./rounds.ts";
import { describeLoad, describeMachine, runBench, isRequested } from "./run-bench.ts";
import { heldMessage, simulateRunners } from "./runners/simulated-runners.ts";

const [, , benchDirectory = ""] = process.argv;
const root = dirname(benchDirectory);
const counts = [1000, 5000];
const busyRunners = 200;
/** Twice as long as a poll is held, so that each runner polls exactly twice in that time. */
const idleSeconds = 100;
const busySeconds = 15;
const samples = 200;

/** Measures what idle and busy runners cost one coordinator. */
async function main(): Promise<void> {
  process.stdout.write(`${describeMachine()}\n`);
  const directory = ownedDirectory(mkdtempSync(join(tmpdir(), "drover-bench-")));
  writeDefinitions(root, directory, join(directory, "job-times.sock"));
  const rows: string[][] = [];
  if (isRequested("sqlite")) for (const count of counts) rows.push(await measure(directory, count, null));
  if (isRequested("postgres")) {
    const server = await startServer(root);
    for (const count of counts) rows.push(await measure(directory, count, server));
    await server.stop();
  }
  printTable(
    "Simulated runners against one coordinator",
    [
      "runners",
      "record in",
      `idle for ${idleSeconds} s: CPU of the coordinator`,
      "of the database",
      "resident",
      "goal (5,000 idle)",
      `a run until it is claimed, p50 / p99`,
      `${busyRunners} of them busy: CPU`,
      "a run until it is claimed",
    ],
    rows,
  );
  process.stdout.write(`\nLoad at the end: ${describeLoad()}\n`);
}

async function measure(directory: string, runners: number, server: Server | null): Promise<string[]> {
  const engine = server ? "PostgreSQL" : "SQLite";
  const database: Database | null = server
    ? { url: await server.createDatabase(), secret: randomBytes(32).toString("hex") }
    : null;
  const coordinator = await startCoordinator(root, directory, `state-${engine}-${runners}`, database);
  const { client, url, token, pid } = coordinator;
  const simulated = await startRole("simulated-runners", { url, token, runners });
  const measureUsage = (seconds: number, what: () => number): Promise<string> => measurePartOfCore(seconds, what);
  await pause(5000);
  const [idle, databaseIdle] = await Promise.all([
    measureUsage(idleSeconds, () => readCpuMs([pid])),
    server ? measureUsage(idleSeconds, server.cpuMs) : Promise.resolve(""),
  ]);
  const resident = readMegabytes(pid, "Rss");
  const idleClaimTimes = await measureClaimTimes(client);
  for (let index = 0; index < busyRunners; index += 1)
    await client.submit({ agent_name: "noop", parameters: { id: `held-${index}`, message: heldMessage } });
  await waitUntil("all of them busy", async () => {
    const { items } = await client.runs.list({ status: ["running"], limit: busyRunners });
    return items.length >= busyRunners;
  });
  const working = await measureUsage(busySeconds, () => readCpuMs([pid]));
  const beside = await measureClaimTimes(client);
  await simulated.stop();
  await coordinator.stop();
  return [
    runners.toLocaleString("en"),
    engine,
    idle,
    databaseIdle,
    resident,
    runners === 5000 ? "10 %, 500 MB" : "",
    idleClaimTimes,
    working,
    beside,
  ];
}

async function measurePartOfCore(seconds: number, what: () => number): Promise<string> {
  const cpuBefore = what();
  await pause(seconds * 1000);
  return `${((what() - cpuBefore) / (seconds * 10)).toFixed(1)} %`;
}

type Client = Awaited<ReturnType<typeof startCoordinator>>["client"];

/** Reads the time from creation to claim from the record's own timestamps. */
async function measureClaimTimes(client: Client): Promise<string> {
  const times: number[] = [];
  for (let index = 0; index < samples; index += 1) {
    const { run_id } = await client.submit({
      agent_name: "noop",
      parameters: { id: `quick-${index}-${randomBytes(4).toString("hex")}` },
    });
    await waitUntil("the claim", async () => {
      const run = await client.runs.get(run_id);
      if (run.claimed_at === null) return false;
      times.push(Date.parse(run.claimed_at) - Date.parse(run.created_at));
      return true;
    });
  }
  times.sort((a, b) => a - b);
  return `${median(times).toFixed(0)} / ${times[Math.floor(times.length * 0.99)]} ms`;
}

runBench(main, { "simulated-runners": simulateRunners });
