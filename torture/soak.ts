import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { locksDirectory, logsDirectory, recordDirectory, runsDirectory } from "../src/model/state-layout.ts";
import { findCgroupParents } from "../src/process/cgroup-parents.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import type { Child } from "./processes.ts";
import { readAllRuns } from "./record.ts";
import { forEachConcurrently, retryWhileUnreachable, pause, countUpTo, waitFor } from "./wait.ts";

/** What Drover's processes use while idle. */
interface Sample {
  "coordinators MB": number;
  "runners MB": number;
  fds: number;
  processes: number;
  cgroups: number;
  "files of runners": number;
  "connections to the database": number;
}

/** The first one is for warm-up and is not judged. */
const samples = 6;

/** R11: many runs, one after the other. Resource usage does not grow. */
export async function soak(
  { runs, settleMs = 500 }: { runs: number; settleMs?: number },
  tools: Tools,
): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    await testbed.putAgent("work");
    const runners: Child[] = [];
    for (const index of countUpTo(2))
      runners.push((await testbed.startRunner({ name: `runner-${index}`, slots: 6 })).child);
    const found: Sample[] = [];
    let done = 0;
    for (const no of countUpTo(samples)) {
      const share = Math.ceil((runs * (no + 1)) / samples) - done;
      await forEachConcurrently(countUpTo(share), 16, async () => {
        await retryWhileUnreachable(() => testbed.client.submit({ agent_name: "work", parameters: { lines: 2 } }));
      });
      done += share;
      await waitUntilIdle(testbed);
      found.push(await sample(testbed, runners, settleMs));
      tools.progress(`${done} of ${runs} runs: ${JSON.stringify(found.at(-1))}`);
    }
    const failed = (await readAllRuns(testbed.client)).filter(({ status }) => status !== "completed");
    const growth = judge(found);
    return {
      seen: { runs: done, ...formatSample("at first", found[1]!), ...formatSample("at last", found.at(-1)!) },
      broken: [
        ...growth,
        ...failed.slice(0, 10).map(({ run_id, status, error }) => `${run_id} is ${status}: ${error}`),
      ],
      late: [],
    };
  });
}

async function waitUntilIdle({ client }: Testbed): Promise<void> {
  const open = ["pending", "claimed", "running", "stopping"] as const;
  const idle = await waitFor(
    async () => ((await client.runs.list({ status: [...open], limit: 1 })).items.length === 0 ? true : null),
    600_000,
    100,
  );
  if (idle === null) throw new Error("not all of the runs ended");
}

/** The minimum of several measurements, since memory may be released a moment later. */
async function sample(testbed: Testbed, runners: readonly Child[], settleMs: number): Promise<Sample> {
  const measurements: Sample[] = [];
  for (const _ of countUpTo(4)) {
    await pause(settleMs);
    measurements.push(await check(testbed, runners));
  }
  return Object.fromEntries(
    Object.keys(measurements[0]!).map((key) => [
      key,
      Math.min(...measurements.map((item) => item[key as keyof Sample])),
    ]), // The object's own keys.
  ) as unknown as Sample; // Has all keys.
}

async function check(testbed: Testbed, runners: readonly Child[]): Promise<Sample> {
  const coordinators = testbed.coordinators.map(({ child }) => child);
  const all = [...coordinators, ...runners];
  return {
    "coordinators MB": Math.round(coordinators.reduce((sum, { pid }) => sum + readResidentMb(pid), 0)),
    "runners MB": Math.round(runners.reduce((sum, { pid }) => sum + readResidentMb(pid), 0)),
    fds: all.reduce((sum, { pid }) => sum + readdirSync(`/proc/${pid}/fd`).length, 0),
    processes: countProcesses(testbed.directory),
    cgroups: countCgroups(all.map(({ pid }) => pid)),
    "files of runners": countBelow(join(testbed.directory, "runners")),
    "connections to the database": testbed.fleet ? await countConnections(testbed.fleet.url) : 0,
  };
}

function readResidentMb(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]);
  return (pages * 4096) / 2 ** 20;
}

/** Processes started in this testbed, recognized by its path in their environment. */
function countProcesses(directory: string): number {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, "utf8").includes(directory);
    } catch {
      return false; // It has just exited.
    }
  }).length;
}

/** Cgroups are named after the process that created them. */
function countCgroups(pids: readonly number[]): number {
  const parents = findCgroupParents();
  return [...new Set([parents.memoryBytes?.parent, parents.processes?.parent])]
    .filter((parent) => parent !== undefined)
    .flatMap((parent) => readdirSync(parent).filter((name) => pids.some((pid) => name.startsWith(`drover-${pid}-`))))
    .length;
}

/** Files in every runner's state directory. */
function countBelow(directory: string): number {
  return (
    readdirSync(directory)
      .flatMap((runner) => {
        const [record, runs] = [recordDirectory(join(directory, runner)), runsDirectory(join(directory, runner))];
        return [logsDirectory(record), locksDirectory(record), runs];
      })
      .filter((path) => existsSync(path))
      .flatMap((path) => readdirSync(path, { recursive: true }).map((name) => join(path, String(name))))
      // Retention removes the logs of finished runs later.
      .filter((path) => !path.endsWith(".jsonl") || !readFileSync(path, "utf8").endsWith('{"shipped":true}\n')).length
  );
}

async function countConnections(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ count: string }>(
    "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'drover'",
  );
  await client.end();
  return Number(rows[0]?.count);
}

function formatSample(when: string, found: Sample): Record<string, number> {
  return Object.fromEntries(Object.entries(found).map(([name, count]) => [`${name} ${when}`, count]));
}

/** Memory may fluctuate, and counts may differ by what is being created at that moment. */
function judge(found: readonly Sample[]): string[] {
  const [, first, ...others] = found;
  const last = others.at(-1)!;
  const max = (name: keyof Sample): number =>
    name.endsWith("MB") ? first![name] * 1.2 + 20 : first![name] + (name === "fds" ? 8 : 0);
  return (Object.keys(last) as (keyof Sample)[]) // The object's own keys.
    .filter((name) => last[name] > max(name))
    .map((name) => `${name} grew: ${found.map((item) => item[name]).join(", ")}`);
}
