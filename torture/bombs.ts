import { spawn } from "node:child_process";
import { join } from "node:path";
import { findCgroupParents } from "../src/process/cgroup-parents.ts";
import { newMark, survivors } from "../test/fixtures/process/survivors.ts";
import { type Finding, percentile, type Tools } from "./finding.ts";
import { inPlace, type Place } from "./place.ts";
import { each, pause, upTo, waitFor } from "./wait.ts";

interface Bomb {
  limit: string;
  script: string;
}

const bombs: Record<string, Bomb> = {
  // each of them makes two
  fork: { limit: "processes=64", script: "bomb() { bomb & bomb; }; bomb" },
  memory: { limit: "memory=64m", script: "tail /dev/zero" },
  "one file": { limit: "file-size=8m", script: "cat /dev/zero > big" },
  cpu: { limit: "cpu=1", script: "while :; do :; done" },
};

interface Size {
  each: number;
  outputMb: number;
  /** To see how fast others are answered without all that. */
  idleMs?: number;
}

/**
 * K3: commands that take all they can get: processes, memory, a file, time, output. Each is ended as over its limit, nothing
 * of it stays, and a coordinator on the same machine answers others meanwhile.
 */
export async function bombing({ each: count, outputMb, idleMs = 10_000 }: Size, tools: Tools): Promise<Finding> {
  const { memoryBytes, processes } = findCgroupParents();
  return inPlace(tools, null, async (place) => {
    const idle = await answerTimes(place, pause(idleMs));
    const broken: string[] = [];
    const ended: Record<string, number> = {};
    const explode = async (): Promise<void> => {
      for (const [name, bomb] of Object.entries(bombs)) {
        const needs = name === "fork" ? processes : name === "memory" ? memoryBytes : true;
        if (needs === null) {
          tools.progress(`${name}: this host has no cgroup for it`);
          continue;
        }
        ended[name] = 0;
        await each(upTo(count), 2, async () => {
          const fault = await explodeOne(place, bomb, tools);
          if (fault === null) ended[name]! += 1;
          else broken.push(`${name}: ${fault}`);
        });
        tools.progress(`${name}: ${ended[name]} of ${count}`);
      }
    };
    const under = await answerTimes(place, explode());
    broken.push(...(await tooMuchOutput(place, outputMb, tools)));
    const [before, during] = [percentile(idle, 0.99), percentile(under, 0.99)];
    return {
      seen: {
        ...ended,
        "MB of output": outputMb,
        "p99 ms of others' requests, idle": Math.round(before * 10) / 10,
        "p99 ms, under bombs": Math.round(during * 10) / 10,
      },
      broken,
      // a request of a few milliseconds is doubled by one turn of the scheduler
      late:
        during > 2 * Math.max(before, 10) ? [`others waited ${Math.round(during)} ms, ${Math.round(before)} idle`] : [],
    };
  });
}

async function answerTimes({ client }: Place, until: Promise<void>): Promise<number[]> {
  const took: number[] = [];
  let over = false;
  const ended = until.finally(() => (over = true));
  // whoever waits for it below is told
  ended.catch(() => undefined);
  while (!over) {
    const since = performance.now();
    await client.runs.list({ limit: 1 });
    took.push(performance.now() - since);
    await pause(10);
  }
  await ended;
  return took;
}

async function explodeOne(place: Place, { limit, script }: Bomb, { root }: Tools): Promise<string | null> {
  const mark = newMark();
  const words = ["exec", "--json", "--timeout", "60", "--limit", limit, "--", "sh", "-c", script, mark];
  const { code, stdout } = await run([process.execPath, join(root, "bin", "drover.js"), ...words], place);
  const result = tryJson(stdout);
  const left = survivors(mark);
  for (const pid of left) process.kill(pid, "SIGKILL");
  if (left.length > 0) return `${left.length} processes are alive`;
  return result?.error?.code === "DROVER-EXE-009" && code === 124
    ? null
    : `ended with ${code} and ${JSON.stringify(result?.error ?? stdout.slice(0, 300))}`;
}

/** More than is kept of a command goes nowhere, and more than a run's log may have ends the run. */
async function tooMuchOutput(place: Place, outputMb: number, { root, progress }: Tools): Promise<string[]> {
  const faults: string[] = [];
  const words = ["exec", "--json", "--timeout", "600", "--", "sh", "-c", `yes | head -c ${outputMb}M`];
  const { code, stdout } = await run([process.execPath, join(root, "bin", "drover.js"), ...words], place);
  const result = tryJson(stdout);
  if (code !== 0 || result?.truncated !== true || stdout.length > 4 * 2 ** 20)
    faults.push(
      `exec of ${outputMb} MB ended with ${code}, truncated ${result?.truncated}, ${stdout.length} characters`,
    );
  progress(`${outputMb} MB of output to exec`);
  if (outputMb < 300) return faults;
  await place.startRunner({ name: "talker", slots: 1 });
  await place.client.agents.put("yes", { type: "procedural", command: "yes this is said again and again and again" });
  const { run_id } = await place.client.submit({ agent_name: "yes" });
  const ended = await waitFor(
    async () => {
      const seen = await place.client.runs.get(run_id);
      return seen.finished_at === null ? null : seen;
    },
    600_000,
    500,
  );
  if (ended?.reason !== "limit_exceeded")
    faults.push(`endless output: ${ended?.status} ${ended?.reason} ${ended?.error}`);
  return faults;
}

function run([file = "", ...words]: string[], { directory }: Place): Promise<{ code: number | null; stdout: string }> {
  const env = { PATH: process.env["PATH"] ?? "", HOME: directory, DROVER_STATE_DIR: join(directory, "exec-state") };
  const child = spawn(file, words, { cwd: directory, env, stdio: ["ignore", "pipe", "ignore"] });
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout }));
  });
}

function tryJson(text: string): { error?: { code?: string } | null; truncated?: boolean } | null {
  try {
    // written by our own command line
    return JSON.parse(text) as ReturnType<typeof tryJson>;
  } catch {
    return null;
  }
}
