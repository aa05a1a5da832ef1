import { spawn } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { runsDirectory, tmpDirectory } from "../src/model/state-layout.ts";
import type { Run } from "../src/model/run.ts";
import { findCgroupParents } from "../src/process/cgroup-parents.ts";
import { createMark, findSurvivors } from "../test/fixtures/process/survivors.ts";
import { type Finding, percentile, type Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { forEachConcurrently, pause, countUpTo, waitFor } from "./wait.ts";

interface Bomb {
  limit: string;
  script: string;
  /** Large enough that one run suffices. */
  once?: true;
}

const fillDisk = "while :; do i=$((i+1)); head -c 3000000 /dev/zero > $i; done";
const makeFiles = "while :; do i=$((i+1)); mkdir $i; j=0; while [ $j -lt 1000 ]; do j=$((j+1)); : > $i/$j; done; done";

const createBombs = ({ files }: Size): Record<string, Bomb> => ({
  // Every process starts two more.
  fork: { limit: "processes=64", script: "bomb() { bomb & bomb; }; bomb" },
  memory: { limit: "memory=64m", script: "tail /dev/zero" },
  "one file": { limit: "file-size=8m", script: "cat /dev/zero > big" },
  cpu: { limit: "cpu=1", script: "while :; do :; done" },
  disk: { limit: "disk=32m", script: fillDisk },
  files: { limit: `files=${files}`, script: makeFiles, once: true },
});

const runner = "bombed";

interface Size {
  each: number;
  outputMb: number;
  /** The limit on files that a command may create. */
  files: number;
  /** How long the baseline without load is measured. */
  idleMs?: number;
}

/**
 * K3: commands exhaust processes, memory, one file, the disk, files, CPU time and output. Each is ended for exceeding its
 * limit and leaves nothing behind, and a coordinator on the same machine keeps answering others.
 */
export async function testBombs(size: Size, tools: Tools): Promise<Finding> {
  const { each: count, outputMb, idleMs = 10_000 } = size;
  const { memoryBytes, processes } = findCgroupParents();
  return withTestbed(tools, null, async (testbed) => {
    await testbed.startRunner({ name: runner, slots: 1 });
    const idle = await measureAnswerTimes(testbed, pause(idleMs));
    const broken: string[] = [];
    const ended: Record<string, number> = {};
    const explode = async (): Promise<void> => {
      for (const [name, bomb] of Object.entries(createBombs(size))) {
        const needs = name === "fork" ? processes : name === "memory" ? memoryBytes : true;
        if (needs === null) {
          tools.progress(`${name}: this host has no cgroup for it`);
          continue;
        }
        ended[name] = 0;
        const times = bomb.once ? 1 : count;
        await forEachConcurrently(countUpTo(times), 2, async () => {
          const fault = await runBomb(testbed, bomb, tools);
          if (fault === null) ended[name]! += 1;
          else broken.push(`${name}: ${fault}`);
        });
        tools.progress(`${name}: ${ended[name]} of ${times}`);
      }
      const faults = await testHoardingRuns(testbed, size);
      ended["runs over disk and files"] = 2 - faults.length;
      broken.push(...faults);
    };
    const under = await measureAnswerTimes(testbed, explode());
    broken.push(...(await testTooMuchOutput(testbed, outputMb, tools)));
    const [before, during] = [percentile(idle, 0.99), percentile(under, 0.99)];
    return {
      seen: {
        ...ended,
        "MB of output": outputMb,
        "p99 ms of others' requests, idle": Math.round(before * 10) / 10,
        "p99 ms, under bombs": Math.round(during * 10) / 10,
      },
      broken,
      // Below 10 ms a single scheduler slice doubles a request's time.
      late:
        during > 2 * Math.max(before, 10) ? [`others waited ${Math.round(during)} ms, ${Math.round(before)} idle`] : [],
    };
  });
}

async function measureAnswerTimes({ client }: Testbed, deadline: Promise<void>): Promise<number[]> {
  const duration: number[] = [];
  let isOver = false;
  const ended = deadline.finally(() => (isOver = true));
  // The rejection is handled below, where it is awaited.
  ended.catch(() => undefined);
  while (!isOver) {
    const startedAt = performance.now();
    await client.runs.list({ limit: 1 });
    duration.push(performance.now() - startedAt);
    await pause(10);
  }
  await ended;
  return duration;
}

async function runBomb(testbed: Testbed, { limit, script, once }: Bomb, { root }: Tools): Promise<string | null> {
  const mark = createMark();
  const directory = join(testbed.directory, "bombs", mark);
  mkdirSync(directory, { recursive: true });
  const options = ["--json", "--timeout", once ? "1800" : "60", "--cwd", directory, "--limit", limit];
  const args = ["exec", ...options, "--", "sh", "-c", script, mark];
  const { code, stdout } = await run([process.execPath, join(root, "bin", "drover.js"), ...args], testbed);
  const result = parseJsonOrNull(stdout);
  const remaining = findSurvivors(mark);
  for (const pid of remaining) process.kill(pid, "SIGKILL");
  // In another process: removing a million files here would distort the measurement.
  await run(["rm", "-rf", directory], testbed);
  if (remaining.length > 0) return `${remaining.length} processes are alive`;
  return result?.error?.code === "DROVER-EXE-009" && code === 124
    ? null
    : `ended with ${code} and ${JSON.stringify(result?.error ?? stdout.slice(0, 300))}`;
}

/** Runs that fill the temporary directory that Drover creates for them and removes afterwards. */
async function testHoardingRuns(testbed: Testbed, { files }: Size): Promise<string[]> {
  const faults: string[] = [];
  const hoarders = [
    { name: "fills-disk", script: fillDisk, limits: { disk_bytes: 32 * 2 ** 20 } },
    { name: "makes-files", script: makeFiles, limits: { files: Math.min(files, 20_000) } },
  ];
  for (const { name, script, limits } of hoarders) {
    await testbed.client.agents.put(name, { type: "procedural", command: `sh -c 'cd "$TMPDIR"; ${script}'`, limits });
    const { run_id } = await testbed.client.submit({ agent_name: name });
    const ended = await waitForEnd(testbed, run_id);
    // The runner reports the outcome first.
    const removed = await waitFor(
      async () => (listTemporaryDirectories(testbed, run_id).length === 0 ? true : null),
      60_000,
    );
    if (ended?.reason !== "limit_exceeded") faults.push(`${name}: ${ended?.status} ${ended?.reason} ${ended?.error}`);
    else if (removed === null) faults.push(`${name}: its temporary directory is still there`);
  }
  return faults;
}

/** The temporary directories of a run's attempts, one below that of each registration. */
function listTemporaryDirectories({ directory }: Testbed, run_id: string): string[] {
  const tmp = tmpDirectory(runsDirectory(join(directory, "runners", runner)));
  return readdirSync(tmp)
    .flatMap((registration) => readdirSync(join(tmp, registration)))
    .filter((name) => name.startsWith(run_id));
}

function waitForEnd({ client }: Testbed, run_id: string): Promise<Run | null> {
  return waitFor(
    async () => {
      const seen = await client.runs.get(run_id);
      return seen.finished_at === null ? null : seen;
    },
    600_000,
    500,
  );
}

/** `exec` truncates output beyond what it keeps. A run whose log exceeds its limit is ended. */
async function testTooMuchOutput(testbed: Testbed, outputMb: number, { root, progress }: Tools): Promise<string[]> {
  const faults: string[] = [];
  const args = ["exec", "--json", "--timeout", "600", "--", "sh", "-c", `yes | head -c ${outputMb}M`];
  const { code, stdout } = await run([process.execPath, join(root, "bin", "drover.js"), ...args], testbed);
  const result = parseJsonOrNull(stdout);
  if (code !== 0 || result?.truncated !== true || stdout.length > 4 * 2 ** 20)
    faults.push(
      `exec of ${outputMb} MB ended with ${code}, truncated ${result?.truncated}, ${stdout.length} characters`,
    );
  progress(`${outputMb} MB of output to exec`);
  if (outputMb < 300) return faults;
  await testbed.client.agents.put("yes", { type: "procedural", command: "yes this is said again and again and again" });
  const { run_id } = await testbed.client.submit({ agent_name: "yes" });
  const ended = await waitForEnd(testbed, run_id);
  if (ended?.reason !== "limit_exceeded")
    faults.push(`endless output: ${ended?.status} ${ended?.reason} ${ended?.error}`);
  return faults;
}

function run([file = "", ...args]: string[], { directory }: Testbed): Promise<{ code: number | null; stdout: string }> {
  const env = { PATH: process.env["PATH"] ?? "", HOME: directory, DROVER_STATE_DIR: join(directory, "exec-state") };
  const child = spawn(file, args, { cwd: directory, env, stdio: ["ignore", "pipe", "ignore"] });
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout }));
  });
}

function parseJsonOrNull(text: string): { error?: { code?: string } | null; truncated?: boolean } | null {
  try {
    // Printed by our own command line.
    return JSON.parse(text) as ReturnType<typeof parseJsonOrNull>;
  } catch {
    return null;
  }
}
