import { existsSync } from "node:fs";
import { join } from "node:path";
import { recordDirectory } from "../src/model/state-layout.ts";
import type { StoredEvent } from "../src/model/event.ts";
import { readKey } from "../src/record/audit/key.ts";
import { openStore } from "../src/record/open.ts";
import { openPostgresStore } from "../src/record/postgres/open.ts";
import type { RecordStore } from "../src/record/record-store.ts";
import { drover, type CommandResult } from "./drover-command.ts";
import { type Finding, largest, type Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { findLogFaults, getStdout } from "./record.ts";
import { pause } from "./wait.ts";

interface Size {
  seconds: number;
  perSecond: number;
  backups: number;
}

interface Backup {
  file: string;
  ms: number;
  /** Ids of runs that ended before the backup started. */
  before: string[];
}

const lines = 3;

/**
 * Makes backups while runs are submitted and executed at a steady rate, alternately through the coordinator and directly
 * from the record. Restores each one on both engines in turn: its chain verifies, and it contains all runs that ended
 * before it, with every event.
 */
export async function backups({ seconds, perSecond, backups: requested }: Size, tools: Tools): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    await testbed.putAgent("work");
    await testbed.startRunner({ name: "steady", slots: 8 });
    const submits: Promise<number>[] = [];
    const deadline = performance.now() + seconds * 1000;
    const submitting = (async () => {
      for (let due = performance.now(); due < deadline; due += 1000 / perSecond) {
        await pause(Math.max(0, due - performance.now()));
        submits.push(submitOne(testbed));
      }
    })();
    const created: Backup[] = [];
    const broken: string[] = [];
    for (let index = 0; index < requested; index += 1) {
      // Spread the backups over the time, the first one after the first run.
      await pause(Math.max(0, deadline - (seconds * 1000 * (requested - index)) / (requested + 1) - performance.now()));
      const backup = await makeBackup(testbed, tools, index);
      if ("fault" in backup) broken.push(backup.fault);
      else created.push(backup);
      tools.progress(`backup ${index + 1} of ${requested}`);
    }
    await submitting;
    const submitMs = await Promise.all(submits);
    const results = await Promise.all(created.map((backup, index) => judge(testbed, tools, backup, index)));
    const sum = (valueOf: (result: Judged) => number): number =>
      results.reduce((total, item) => total + valueOf(item), 0);
    return {
      seen: {
        "runs asked for": submitMs.length,
        backups: created.length,
        "runs in them": sum(({ runs }) => runs),
        "ended before and missing": sum(({ missing }) => missing),
        "events in them": sum(({ events }) => events),
        "with events missing": sum(({ incomplete }) => incomplete),
        "chains that do not verify": sum(({ verified }) => (verified ? 0 : 1)),
        "ms for a backup, at most": Math.round(largest(created.map(({ ms }) => ms))),
        "ms for a submit, at most": Math.round(largest(submitMs)),
      },
      broken: [...broken, ...results.flatMap(({ faults }) => faults)],
      late: [],
    };
  });
}

async function submitOne({ client }: Testbed): Promise<number> {
  const startedAt = performance.now();
  await client.submit({ agent_name: "work", parameters: { lines } });
  return performance.now() - startedAt;
}

/** Every second backup goes through a coordinator, the others read the record directly. */
async function makeBackup(testbed: Testbed, tools: Tools, index: number): Promise<Backup | { fault: string }> {
  const { items } = await testbed.client.runs.list({ status: ["completed"], limit: 1000 });
  const file = join(testbed.directory, `backup ${index}`);
  const byCoordinator = { DROVER_API_URL: testbed.url, DROVER_API_KEY: testbed.token };
  const result = await command(
    testbed,
    tools,
    index % 2 === 0 ? byCoordinator : getLocationEnv(testbed),
    "backup",
    file,
  );
  if (result.code !== 0 || !existsSync(file)) return { fault: `backup ${index}: ${result.output}` };
  return { file, ms: result.ms, before: items.map(({ run_id }) => run_id) };
}

function getLocationEnv({ fleet, state }: Testbed): Record<string, string> {
  return fleet === null
    ? { DROVER_STATE_DIR: state }
    : { DATABASE_URL: fleet.url, DROVER_SECRET: fleet.secret.toString("hex") };
}

function command(
  testbed: Testbed,
  tools: Tools,
  env: Record<string, string>,
  ...args: string[]
): Promise<CommandResult> {
  return drover({ processes: testbed.processes, tools, cwd: testbed.directory }, env, ...args);
}

interface Judged {
  runs: number;
  events: number;
  missing: number;
  incomplete: number;
  verified: boolean;
  faults: string[];
}

/** Restores the backup into a state directory, and every second one also into PostgreSQL. */
async function judge(testbed: Testbed, tools: Tools, { file, before }: Backup, index: number): Promise<Judged> {
  const state = join(testbed.directory, `restored ${index}`);
  const directory = recordDirectory(state);
  const sqliteEnv = { DROVER_STATE_DIR: state };
  // Always, because the key is read from there.
  const restored = [await command(testbed, tools, sqliteEnv, "restore", file)];
  const database = index % 2 === 0 ? null : await tools.openDatabase();
  const secret = readKey(directory) ?? new Uint8Array();
  const postgresEnv = { DATABASE_URL: database?.url ?? "", DROVER_SECRET: Buffer.from(secret).toString("hex") };
  try {
    if (database !== null) restored.push(await command(testbed, tools, postgresEnv, "restore", file));
    const head = /^head (.+)$/m.exec(restored[0]?.output ?? "")?.[1] ?? "";
    const verified = await command(
      testbed,
      tools,
      database === null ? sqliteEnv : postgresEnv,
      "audit",
      "verify",
      "--head",
      head,
    );
    const store =
      database === null
        ? await openStore({ directory, now: () => new Date(), mode: "read" })
        : await openPostgresStore({ url: database.url, secret });
    const results = await inspect(store, before);
    await store.close();
    const unrestored = restored
      .filter(({ code }) => code !== 0)
      .map(({ output: said }) => `restore of ${file}: ${said}`);
    const unverified = verified.code === 0 ? [] : [`audit verify of ${file}: ${verified.output}`];
    return { ...results, verified: verified.code === 0, faults: [...unrestored, ...unverified, ...results.faults] };
  } finally {
    await database?.drop();
  }
}

async function inspect({ read }: RecordStore, before: readonly string[]): Promise<Omit<Judged, "verified">> {
  const results = { runs: 0, events: 0, missing: 0, incomplete: 0, faults: [] as string[] };
  const ended = new Set<string>();
  for (let page: { limit: number; before?: string } = { limit: 1000 }; ;) {
    const runs = await read.runs({}, page);
    for (const { run_id, status } of runs) {
      const log = await read.events(run_id, 0, 1000);
      const faults = [...findLogFaults(run_id, log), ...(status === "completed" ? findRunFaults(run_id, log) : [])];
      if (status === "completed") ended.add(run_id);
      if (log.length === 0) faults.push(`${run_id} has no events`);
      results.runs += 1;
      results.events += log.length;
      if (faults.length > 0) results.incomplete += 1;
      results.faults.push(...faults);
    }
    const last = runs.at(-1);
    if (last === undefined) break;
    page = { limit: 1000, before: last.run_id };
  }
  const missing = before.filter((run_id) => !ended.has(run_id));
  return {
    ...results,
    missing: missing.length,
    faults: [...results.faults, ...missing.map((run_id) => `${run_id} is missing`)],
  };
}

/** A completed run has its start, its whole output and its end. */
function findRunFaults(run_id: string, log: readonly StoredEvent[]): string[] {
  const expected = Array.from({ length: lines }, (_, index) => `line ${index + 1}\n`).join("");
  const types = new Set(log.map(({ event }) => event.type));
  const absent = (["execution_started", "execution_ended", "result"] as const).filter((type) => !types.has(type));
  return [
    ...absent.map((type) => `${run_id} has no ${type}`),
    ...(getStdout(log) === expected ? [] : [`${run_id} printed ${JSON.stringify(getStdout(log))}`]),
  ];
}
