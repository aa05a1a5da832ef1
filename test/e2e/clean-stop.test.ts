import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import type { StoredEvent } from "../../src/model/event.ts";
import type { Run } from "../../src/model/run.ts";
import { announcementFile, recordDirectory } from "../../src/model/state-layout.ts";
import { findOrphans } from "../../src/process/orphans.ts";
import { bin, createDirectory, getTestHome } from "./drover.ts";
import { startCoordinator, type CoordinatorProcess } from "./coordinator-process.ts";

const runningChildren: (() => void)[] = [];
afterEach(() => {
  for (const kill of runningChildren.splice(0)) kill();
});

/** Starts `drover runner` and waits until it has printed what it offers. */
async function startRunner(coordinator: CoordinatorProcess, cwd: string, profile = "echo") {
  const child = spawn(process.execPath, [bin, "runner", "--examples", "-x", profile], {
    cwd,
    env: {
      PATH: process.env["PATH"],
      HOME: getTestHome(),
      DROVER_STATE_DIR: join(cwd, "runner"),
      DROVER_API_URL: coordinator.url,
      DROVER_API_KEY: coordinator.token,
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  runningChildren.push(() => void child.kill("SIGKILL"));
  let output = "";
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString("utf8")));
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  await expect.poll(() => output).toMatch(/^Offers /m);
  /** Ends the runner. Returns its exit code and what it printed besides its offer. */
  const stop = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    return [await closed, output.replace(/^Offers .*\n/gm, "")];
  };
  return { stop };
}

const readMetrics = async ({ url, token }: CoordinatorProcess): Promise<string> =>
  (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text();

it("prints only that it has stopped if no run is active, right after its start and during a long poll", async () => {
  const cwd = createDirectory();
  const coordinator = await startCoordinator(cwd);
  for (const signal of ["SIGTERM", "SIGINT", "SIGTERM", "SIGINT"] as const) {
    expect(await (await startRunner(coordinator, cwd)).stop(signal)).toEqual([0, "Stopped.\n"]);
    const idle = await startRunner(coordinator, cwd);
    await expect.poll(() => readMetrics(coordinator)).toMatch(/^drover_held_polls 1$/m);
    expect(await idle.stop(signal)).toEqual([0, "Stopped.\n"]);
    const { json } = await coordinator.call<{ items: unknown[] }>("GET", "/runners");
    expect(json.items).toEqual([]);
  }
});

it.each(["SIGKILL", "SIGSTOP"] as const)(
  "exits without trying to register after the coordinator received %s",
  async (gone) => {
    const cwd = createDirectory();
    const coordinator = await startCoordinator(cwd);
    const runner = await startRunner(coordinator, cwd);
    await expect.poll(() => readMetrics(coordinator)).toMatch(/^drover_held_polls 1$/m);
    process.kill(JSON.parse(readFileSync(announcementFile(recordDirectory(coordinator.state)), "utf8")).pid, gone);
    const [code, output] = await runner.stop("SIGTERM");
    expect(code).toBe(0);
    expect(output).not.toMatch(/\(register\)|not registered|^drover runner: re(port|gister)/m);
  },
);

it("stops the run of an executor that never settles and exits, after a single SIGTERM", async () => {
  const cwd = createDirectory();
  const profile = { type: "stuck", module: "./stuck.mjs", agents_dir: "./agents" };
  mkdirSync(join(cwd, "agents"));
  writeFileSync(join(cwd, "stuck.json"), JSON.stringify(profile));
  writeFileSync(join(cwd, "agents", "stuck.json"), '{ "name": "stuck", "type": "autonomous", "executor": "stuck" }');
  writeFileSync(
    join(cwd, "stuck.mjs"),
    `export const executor = { name: "stuck", can: {}, async run(invocation, context) {
       await context.emit({ type: "assistant", text: "started" });
       await new Promise(() => {});
     } };`,
  );
  const coordinator = await startCoordinator(cwd);
  const runner = await startRunner(coordinator, cwd, "./stuck.json");
  const { json: submitted } = await coordinator.call<Run>("POST", "/runs", { agent_name: "stuck", prompt: "x" });
  const path = `/runs/${submitted.run_id}`;
  const readEvents = async () =>
    (await coordinator.call<{ items: StoredEvent[] }>("GET", `${path}/events`)).json.items.map(({ event }) => event);
  await expect.poll(readEvents).toContainEqual({ type: "assistant", text: "started" });

  const [code, output] = await runner.stop("SIGTERM");
  expect({ code, output }).toMatchObject({ code: 0, output: expect.stringMatching(/^Stopped\.$/m) as string });
  expect(output).toMatch(/^Stopping: 1 run is still active\./m);
  expect(output).toMatch(/ of stuck: stopped after \S+ and put back in the queue, because the runner is stopping/);
  expect((await coordinator.call<Run>("GET", path)).json).toMatchObject({ status: "pending" });
  const executions = (await readEvents()).flatMap((event) => ("execution" in event ? [event] : []));
  expect(executions.map(({ type }) => type)).toEqual(["execution_started", "execution_ended"]);
  expect(findOrphans(executions.map(({ execution }) => execution.execution_id))).toEqual([]);
});
