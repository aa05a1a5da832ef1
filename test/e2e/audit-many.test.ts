import { spawn } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { bundle } from "./bundle.ts";
import { drover, folder } from "./drover.ts";

/** Eight at once, until so many commands were acknowledged; now and then one of them is killed and replaced. */
async function runMany(
  script: string,
  state: string,
  marks: string,
  wanted: number,
  kills: number,
): Promise<{ acknowledged: number; errors: string[] }> {
  let acknowledged = 0;
  let killsLeft = kills;
  const errors: string[] = [];
  const oneProcess = (): Promise<void> => {
    const share = Math.ceil(wanted / 8);
    const child = spawn(process.execPath, [script, state, marks, String(share), "4"], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const dieAt = killsLeft-- > 0 ? Math.ceil(share / 3) : Infinity;
    let own = 0;
    child.stdout.on("data", (dots: Buffer) => {
      own += dots.length;
      acknowledged += dots.length;
      if (own >= dieAt) child.kill("SIGKILL");
    });
    child.stderr.on("data", (text: Buffer) => errors.push(text.toString("utf8")));
    return new Promise((resolve) => void child.once("close", () => resolve()));
  };
  const keepGoing = async (): Promise<void> => {
    while (acknowledged < wanted && errors.length === 0) await oneProcess();
  };
  await Promise.all(Array.from({ length: 8 }, keepGoing));
  return { acknowledged, errors };
}

it(
  "10,000 executions from eight processes, some killed: every one is on the record, and the record is whole",
  { timeout: 300_000 },
  async () => {
    const place = folder();
    const state = join(place, "state");
    const marks = join(place, "marks");
    mkdirSync(marks);
    const { acknowledged, errors } = await runMany(await bundle("e2e/exec-many.ts"), state, marks, 10_000, 6);
    expect(errors).toEqual([]);
    expect(acknowledged).toBeGreaterThanOrEqual(10_000);

    const run = (...args: string[]) => drover(args, { cwd: place, env: { DROVER_STATE_DIR: state } });
    // the ends that the killed ones could not write are written by whoever comes next
    expect((await run("runs", "list", "--limit", "1")).code).toBe(0);
    expect(await run("audit", "verify")).toMatchObject({ code: 0, stderr: "" });

    const exported = (await run("audit", "export")).stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const recorded = new Map(exported.map((record) => [record.executionId, record]));
    const happened = readdirSync(marks);
    expect(happened.filter((id) => !recorded.has(id))).toEqual([]);
    const ended = exported.filter((record) => record.success);
    expect(ended.length).toBeGreaterThanOrEqual(acknowledged);
    expect(ended.filter((record) => !happened.includes(record.executionId))).toEqual([]);
    expect(exported.filter((record) => record.state === "running")).toEqual([]);
    // each killed process had up to four under way
    const interrupted = exported.filter((record) => record.interrupted);
    expect(interrupted.length).toBeGreaterThan(0);
    expect(interrupted.length).toBeLessThanOrEqual(24);
  },
);
