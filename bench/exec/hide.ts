import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { CaptureOptions, Isolation, StartOptions } from "../../src/model/process.ts";
import { createExecute } from "../../src/process/execute.ts";
import { createStart } from "../../src/process/start.ts";
import { median, formatMs, printTable } from "../rounds.ts";
import { chooseRounds } from "../run-bench.ts";

/** The cost of hiding the record from a command, in spawn time and in user instructions of a cold start. */
export async function benchHide(state: string, drover: string, capture: CaptureOptions): Promise<void> {
  const home = join(state, "hide", "home");
  for (const directory of Object.values(createProtection(home)).flat()) mkdirSync(directory, { recursive: true });
  const rows: string[][] = [];
  for (const isolation of ["pid", "sandbox"] as const) {
    const times = await measureSpawns(isolation, home, capture);
    if (times === null) continue;
    const [plain, hidden] = [median(times.plain), median(times.hidden)];
    rows.push([
      `execute, ${isolation}`,
      formatMs(plain),
      formatMs(hidden),
      `+${formatMs(hidden - plain)}`,
      "+ <= 0.3 ms",
    ]);
  }
  const counted = countInstructions(state, drover, home);
  if (counted === null) process.stdout.write("\nWithout valgrind the instructions of a cold start are not counted.\n");
  else {
    const { exec, added } = counted;
    const share = `+${((added / exec) * 100).toFixed(2)} %`;
    const label = "user instructions of a cold drover exec true";
    rows.push([label, formatMillions(exec - added), formatMillions(exec), share, "+ <= 2 %"]);
  }
  printTable("Hiding the record", ["what", "without", "with", "added", "goal"], rows);
}

/** The protection that `exec` applies to files in a user's home. */
function createProtection(home: string): Required<Pick<StartOptions, "hide" | "show" | "readOnly">> {
  const userDirectory = join(home, ".local", "state", "drover");
  const project = join(userDirectory, "projects", "project-0123456789ab");
  return {
    hide: [join(project, "record"), userDirectory],
    show: [join(project, "runs")],
    readOnly: [join(home, ".config", "drover")],
  };
}

const spawnCount = 500;

/** Alternates between both variants. Returns null if this host lacks the isolation level. */
async function measureSpawns(isolation: Isolation, home: string, capture: CaptureOptions) {
  const execute = createExecute(createStart());
  const times = { plain: [] as number[], hidden: [] as number[] };
  for (let index = 0; index < spawnCount; index++) {
    for (const name of index % 2 === 0 ? (["plain", "hidden"] as const) : (["hidden", "plain"] as const)) {
      const startedAt = performance.now();
      const { success } = await execute(
        { executable: "/bin/true" },
        { isolation, capture, ...(name === "hidden" ? createProtection(home) : {}) },
      );
      if (!success) return null;
      times[name].push(performance.now() - startedAt);
    }
  }
  return times;
}

const measureColdStarts = 30;

/**
 * Counts the instructions of a process that starts one command, with and without something to hide, and of a cold
 * `exec`. Uses cachegrind, because virtual machines do not count instructions. Both of a pair use the same hash seed,
 * which alone changes the count by millions. Returns null without valgrind.
 */
function countInstructions(state: string, drover: string, home: string): { exec: number; added: number } | null {
  const count = (seed: number, ...args: string[]): number => {
    const valgrind = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"];
    const { stderr } = spawnSync("valgrind", [...valgrind, process.execPath, `--hash-seed=${seed}`, ...args], {
      cwd: state,
      encoding: "utf8",
      env: { PATH: process.env["PATH"], HOME: state, DROVER_STATE_DIR: join(state, "hide", "cold") },
    });
    return Number(/I\s+refs:\s+([\d,]+)/.exec(stderr ?? "")?.[1]?.replaceAll(",", "") ?? NaN);
  };
  const script = process.argv.slice(1, 3);
  const [all, added]: [number[], number[]] = [[], []];
  for (let seed = 1; seed <= chooseRounds(measureColdStarts); seed++) {
    const plain = count(seed, ...script, startOnceRole);
    if (Number.isNaN(plain)) return null;
    added.push(count(seed, ...script, startOnceRole, home) - plain);
    all.push(count(seed, drover, "exec", "true"));
  }
  return { exec: median(all), added: median(added) };
}

export const startOnceRole = "start-once";

/** The role of the measured process. */
export async function startOnce(home: string | undefined): Promise<void> {
  const options = { isolation: "pid" as const, ...(home === undefined ? {} : createProtection(home)) };
  const { error } = await createStart()({ executable: "/bin/true" }, options, new AbortController().signal).result;
  if (error !== null) throw new Error(error.message);
}

const formatMillions = (count: number): string => `${(count / 1e6).toFixed(2)} M`;
