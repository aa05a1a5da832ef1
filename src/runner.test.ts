import { mkdtempSync, readdirSync } from "node:fs";
import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { logsDirectory, recordDirectory } from "./model/state-layout.ts";
import { createMemoryCoordinator } from "../test/fixtures/execute/memory-port.ts";
import { loadProfile } from "./define/profiles.ts";
import { builtInExecutors, startRunner, type RunnerOptions } from "./runner.ts";

/** Uses the long default timeout, because a busy machine may be slow. */
const poll = <T>(get: () => T | Promise<T>) => expect.poll(get, { interval: 10 });

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

async function setUp(profiles: Record<string, object>) {
  const directory = mkdtempSync(join(tmpdir(), "drover-runner-"));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  await mkdir(join(directory, "profiles"));
  await writeFile(join(directory, "hello"), '#!/bin/sh\necho \'{"hello":"\'$1$2\'"}\'\necho "$PASSED $KEPT" >&2\n');
  await chmod(join(directory, "hello"), 0o755);
  const coordinator = createMemoryCoordinator();
  const loaded = [];
  for (const [name, profile] of Object.entries(profiles)) {
    await writeFile(join(directory, "profiles", `${name}.json`), JSON.stringify(profile));
    const result = loadProfile(name, [join(directory, "profiles")], {
      builtIn: builtInExecutors,
      hasCommand: () => true,
    });
    if (!result.ok) throw new Error(JSON.stringify(result.faults));
    loaded.push({ loaded: result.profile, agents: [] });
  }
  const options: RunnerOptions = {
    port: coordinator.port,
    profiles: loaded,
    stateDirectory: join(directory, "state"),
    projectDir: directory,
    env: { ...process.env, PASSED: "passed", KEPT: "kept" },
    maxOutputKb: 1024,
    times: { heartbeatMs: 100, pollPauseMs: 20, shutdownMs: 500 },
    onNotice: () => undefined,
  };
  const start = async (overrides: Partial<RunnerOptions> = {}) => {
    const runner = await startRunner({ ...options, ...overrides });
    cleanups.push(runner.stop);
    return runner;
  };
  return { directory, coordinator, start };
}

test("registers each profile with its own key, executes runs, and unregisters when it stops", async () => {
  const { coordinator, start, directory } = await setUp({
    one: { type: "procedural", env_from: ["PASSED"] },
    two: { type: "procedural", slots: 7, env_from: ["PASSED"] },
  });
  const runner = await start();
  const registrations = [...coordinator.runners.values()].map(({ registration }) => registration);
  expect(registrations.map(({ executor_profile, slots }) => [executor_profile, slots])).toEqual([
    ["one", 4],
    ["two", 7],
  ]);
  expect(registrations[0]!.runner_key).not.toBe(registrations[1]!.runner_key);
  const id = coordinator.submit(
    { command: "./hello", output_schema: { type: "object", required: ["hello"] } },
    { parameters: { name: "you" } },
  );
  await poll(() => coordinator.runs.get(id)!.outcome).toMatchObject({
    status: "completed",
    data: { hello: "--nameyou" },
  });
  expect(coordinator.events(id)).toContainEqual(expect.objectContaining({ stream: "stderr", text: "passed \n" }));
  await runner.stop();
  await runner.stop();
  await runner.done;
  expect([...coordinator.runners.values()].every(({ gone }) => gone)).toBe(true);
  expect(readdirSync(logsDirectory(recordDirectory(join(directory, "state"))))).toEqual([]);
});

test("rejects a second runner with the same identity, and keeps the identity across restarts", async () => {
  const { coordinator, start } = await setUp({ one: { type: "procedural" } });
  const runner = await start();
  await expect(start()).rejects.toThrow("already running");
  const key = coordinator.runners.get(runner.registrations[0]!.runner_id)!.registration.runner_key;
  await runner.stop();
  const restartedRunner = await start();
  expect(restartedRunner.registrations[0]!.runner_id).toBe(runner.registrations[0]!.runner_id);
  expect(coordinator.runners.get(restartedRunner.registrations[0]!.runner_id)!.registration.runner_key).toBe(key);
});

test("registers changed agents while runs continue", async () => {
  const { coordinator, start } = await setUp({ one: { type: "procedural" } });
  const runner = await start();
  const id = coordinator.submit({ command: "sleep 0.4" });
  await poll(() => coordinator.runs.get(id)!.status).toBe("running");
  const { agent } = coordinator.runs.get(id)!.invocation;
  await runner.replaceAgents("one", [{ ...agent, name: "fresh" }]);
  expect([...coordinator.runners.values()][0]!.registration.agents.map(({ name }) => name)).toEqual(["fresh"]);
  await poll(() => coordinator.runs.get(id)!.outcome).toMatchObject({ status: "completed" });
  expect(coordinator.runs.get(id)!.attempt).toBe(1);
});

test("waits for a coordinator that has not started yet", async () => {
  const { coordinator, start } = await setUp({ one: { type: "procedural" } });
  coordinator.faults.away = "down";
  const startPromise = start();
  await poll(() => coordinator.calls.register).toBeGreaterThan(1);
  coordinator.faults.away = null;
  expect((await startPromise).registrations).toHaveLength(1);
});

test("rejects an invalid JOB_TIMEOUT_SECONDS before anything starts", async () => {
  const { coordinator, start } = await setUp({ one: { type: "procedural" } });
  await expect(start({ env: { ...process.env, JOB_TIMEOUT_SECONDS: "soon" } })).rejects.toThrow("JOB_TIMEOUT_SECONDS");
  expect(coordinator.runners.size).toBe(0);
});
