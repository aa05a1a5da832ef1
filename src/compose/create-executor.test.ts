import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, expect, test } from "vitest";
import * as z from "zod";
import { runsDirectory, tmpDirectory } from "../model/state-layout.ts";
import { createMemoryCoordinator } from "../../test/fixtures/execute/memory-port.ts";
import { openHost } from "../../test/fixtures/dispatch/host.ts";
import { reservedEventTypes } from "../execute/journal/recorder.ts";
import { runEventSchema } from "../model/event.ts";
import type { RunnerPort } from "../model/runner-port.ts";
import { hasEnded } from "../model/states.ts";
import { openProfiles } from "./open-profiles.ts";
import { type RunnerOptions, startRunner } from "../runner.ts";

const poll = <T>(get: () => T | Promise<T>) => expect.poll(get, { interval: 10 });

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).toReversed()) await cleanUp();
});

/** Starts a runner like `drover runner -x PROFILE`, with the given port. */
async function start(
  port: RunnerPort,
  profile: string,
  directories: string[],
  env: RunnerOptions["env"] = process.env,
) {
  const directory = mkdtempSync(join(tmpdir(), "drover-runner-"));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  const profiles = await openProfiles({ names: [profile], directories, env, onNotice: expect.fail });
  cleanups.push(profiles.stop);
  const runner = await startRunner({
    port,
    profiles: profiles.profiles,
    stateDirectory: join(directory, "state"),
    projectDir: directory,
    env,
    maxOutputKb: 1024,
    onNotice: () => undefined,
  });
  cleanups.push(runner.stop);
  return { directory, runner };
}

test("runs the example executor with a real coordinator, and leaves no temporary files behind", async () => {
  const host = await openHost();
  await host.dispatcher.start();
  cleanups.push(host.dispose, host.close);
  const { directory } = await start(host.port, "word-count", [resolve("examples/profiles")]);
  const run_id = await host.submit({ agent_name: "word-count", parameters: { text: "The cat saw the dog" } });
  await poll(async () => hasEnded((await host.run(run_id)).status)).toBe(true);
  expect(await host.run(run_id)).toMatchObject({
    status: "completed",
    result_text: "5 words, 4 of them different",
    result_data: { the: 2, cat: 1, saw: 1, dog: 1 },
    progress: 100,
  });
  const files = await host.store.read.files(run_id);
  expect(files).toMatchObject([{ path: "words.csv", media_type: "text/csv" }]);
  const tmp = tmpDirectory(runsDirectory(join(directory, "state")));
  await poll(() => readdirSync(tmp).flatMap((name) => readdirSync(join(tmp, name)))).toEqual([]);
});

test("keeps the example executor at 30 lines or fewer, and identical to the one in docs/writing-executors.md", () => {
  const source = readFileSync("examples/executors/word-count.ts", "utf8");
  expect(source.trimEnd().split("\n").length).toBeLessThanOrEqual(30);
  expect(readFileSync("docs/writing-executors.md", "utf8")).toContain(source);
});

test("lists every event that an executor can emit, with its fields, in docs/writing-executors.md", () => {
  const page = readFileSync("docs/writing-executors.md", "utf8");
  const [, table = ""] = page.split("\n| type | fields | meaning |\n");
  const tableRows = [...table.split("\n\n", 1)[0]!.matchAll(/^\| `(\w+)` \| (`[^|]+`) \|/gm)];
  const events = runEventSchema.options.filter(({ shape }) => !reservedEventTypes.has(shape.type.value));
  expect(tableRows.map(([, type, fields]) => `${type}: ${fields}`)).toEqual(
    events.map(({ shape: { type, ...fields } }) => {
      const names = Object.entries(fields).map(
        ([name, field]) => `${name}${field instanceof z.ZodOptional ? "?" : ""}`,
      );
      return `${type.value}: ${names.map((name) => `\`${name}\``).join(", ")}`;
    }),
  );
});

test("records the agent's own command for drover-procedural-exec, with commit, limits and variables", async () => {
  const host = await openHost();
  await host.dispatcher.start();
  cleanups.push(host.dispose, host.close);
  const home = mkdtempSync(join(tmpdir(), "drover-profile-"));
  cleanups.push(() => rm(home, { recursive: true, force: true }));
  await mkdir(join(home, "profiles"));
  await mkdir(join(home, "agents"));
  const profile = { type: "wrapped", command: "drover-procedural-exec", agents_dir: "./agents" };
  await writeFile(join(home, "profiles", "wrapped.json"), JSON.stringify(profile));
  const agent = { name: "sha", executor: "wrapped", command: "printenv DROVER_REPO_SHA", limits: { files: 1000 } };
  await writeFile(join(home, "agents", "sha.yaml"), JSON.stringify(agent));
  const { directory } = await start(host.port, "wrapped", [join(home, "profiles")]);
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.invalid", ...args], {
      cwd: directory,
      encoding: "utf8",
    });
  git("init", "-q");
  git("commit", "-q", "--allow-empty", "-m", "first");
  const repo_sha = git("rev-parse", "HEAD").trim();
  const run_id = await host.submit({ agent_name: "sha" });
  await poll(async () => hasEnded((await host.run(run_id)).status)).toBe(true);
  expect(await host.run(run_id)).toMatchObject({ status: "completed", result_text: `${repo_sha}\n`, repo_sha });
  expect(await host.store.read.executions({ run_id }, { limit: 10 })).toMatchObject([
    {
      start: {
        argv: [expect.stringMatching(/\/printenv$/), "DROVER_REPO_SHA"],
        correlation: { repo_sha },
        limits: { files: 1000 },
        environment: { mode: "merge", given: ["HOME", "TMPDIR"], withheld: [] },
      },
      end: { exit_code: 0 },
    },
  ]);
});

async function createProfileDirectory(source: string): Promise<string[]> {
  const directory = mkdtempSync(join(tmpdir(), "drover-profile-"));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  await mkdir(join(directory, "profiles"));
  await writeFile(join(directory, "e.mjs"), source);
  await writeFile(
    join(directory, "profiles", "own.json"),
    JSON.stringify({ type: "own", module: "e.mjs", env_from: ["EXTRA"] }),
  );
  return [join(directory, "profiles")];
}

test("passes the variables of the executor and of the profile to its processes", async () => {
  const coordinator = createMemoryCoordinator();
  const directories = await createProfileDirectory(
    'import { defineExecutor } from "drover"; export const executor = defineExecutor({ name: "own", variables: ["MY_*"], async execute({ runCli }) { return (await runCli({ command: ["sh", "-c", "echo $MY_ONE$EXTRA$OTHER_KEY"] })).stdout; } });',
  );
  const env = { ...process.env, MY_ONE: "1", EXTRA: "2", OTHER_KEY: "3" };
  await start(coordinator.port, "own", directories, env);
  const run_id = coordinator.submit({ type: "autonomous" });
  await poll(() => coordinator.runs.get(run_id)!.outcome).toMatchObject({ status: "completed", text: "12\n" });
});

test("claims only runs of DROVER_AGENT, and checks POLL_INTERVAL_SECONDS", async () => {
  const directories = await createProfileDirectory(
    'export const executor = { name: "own", can: {}, run: async () => ({}) };',
  );
  const coordinator = createMemoryCoordinator();
  await start(coordinator.port, "own", directories, {
    ...process.env,
    DROVER_AGENT: "only-this",
    POLL_INTERVAL_SECONDS: "0.5",
  });
  expect([...coordinator.runners.values()][0]!.registration.only_agent).toBe("only-this");
  for (const POLL_INTERVAL_SECONDS of ["0", "-1", "soon", "Infinity"])
    await expect(
      start(coordinator.port, "own", directories, { ...process.env, POLL_INTERVAL_SECONDS }),
    ).rejects.toThrow("POLL_INTERVAL_SECONDS must be a positive number");
});
