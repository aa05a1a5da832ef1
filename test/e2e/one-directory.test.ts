import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { announcementFile, recordDirectory, runnersDirectory, tokenFile } from "../../src/model/state-layout.ts";
import { openStore } from "../../src/record/open.ts";
import { drover, createDirectory, type CommandResult } from "./drover.ts";
import { writeScribe } from "./scribe.ts";
import { type DroverProcess, startDrover } from "./start-drover.ts";

const createProject = () => {
  const cwd = createDirectory();
  const state = join(cwd, "state");
  const env = { DROVER_STATE_DIR: state };
  const run = (...args: string[]): Promise<CommandResult> => drover(args, { cwd, env });
  const json = async (...args: string[]) => JSON.parse((await run(...args, "--json")).stdout);
  const up = (): Promise<DroverProcess> => startDrover(["up", "--port", "0"], { cwd, env, ready: /Drover is up at/ });
  return { cwd, state, env, run, json, up };
};

it("20 runs, 20 execs and two ups started at once in one empty directory all complete, one up serves, and everything is recorded", async () => {
  const { state, run, json, up } = createProject();
  const numbers = Array.from({ length: 20 }, (_, index) => index);
  const [ups, runs, execs] = await Promise.all([
    Promise.allSettled([up(), up()]),
    Promise.all(numbers.map((n) => run("run", "echo", "--message", `run ${n}`))),
    Promise.all(numbers.map((n) => run("exec", `echo exec ${n}`))),
  ]);
  for (const [n, results] of runs.entries())
    expect(results).toMatchObject({
      code: 0,
      signal: null,
      stdout: `${JSON.stringify({ message: `run ${n}` })}\n`,
      stderr: "",
    });
  for (const [n, results] of execs.entries())
    expect(results).toMatchObject({ code: 0, signal: null, stdout: `exec ${n}\n`, stderr: "" });
  const coordinator = ups.flatMap((settled) => (settled.status === "fulfilled" ? [settled.value] : []));
  const refusals = ups.flatMap((settled) => (settled.status === "rejected" ? [String(settled.reason)] : []));
  expect([coordinator.length, refusals]).toEqual([1, [expect.stringContaining("DROVER-STA-011")]]);

  // Every command finds the coordinator that serves, with everything that was recorded before.
  expect((await run("runners", "list")).stdout).toContain("online\techo");
  const listed = (await run("runs", "list", "--limit", "100", "--json")).stdout.trim().split("\n");
  const statuses = listed.map((line) => JSON.parse(line) as { agent_name: string; status: string });
  for (const agent_name of ["echo", "exec"])
    expect(statuses.filter((entry) => entry.agent_name === agent_name && entry.status === "completed")).toHaveLength(
      20,
    );
  expect(statuses).toHaveLength(40);
  expect((await json("run", "echo", "--message", "after")).status).toBe("completed");
  expect((await run("audit", "verify")).code).toBe(0);
  const store = await openStore({ directory: recordDirectory(state), mode: "read", now: () => new Date() });
  const executions = await store.read.executions({}, { limit: 1000 });
  const kinds = store.connection.sql("select distinct kind from audit_rows order by kind").all();
  await store.close();
  expect(new Set(executions.map(({ run_id }) => run_id))).toHaveProperty("size", 41);
  expect(executions.filter(({ end }) => end === null)).toEqual([]);
  expect(kinds).toEqual([{ kind: "end" }, { kind: "start" }]);
});

it("runs without `drover up` until its runner is registered, and through it afterwards", async () => {
  const { cwd, state, run, up } = createProject();
  const module = `import { existsSync, writeFileSync } from "node:fs";
    writeFileSync("loading", "");
    while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 10));
    export const executor = { name: "slow", can: {}, run: async () => ({ status: "completed", exit_code: null }) };`;
  writeFileSync(join(cwd, "slow.mjs"), module);
  mkdirSync(join(cwd, "profiles"));
  writeFileSync(join(cwd, "profiles", "slow.json"), JSON.stringify({ type: "slow", module: "./slow.mjs" }));
  const coordinator = up();
  await expect.poll(() => existsSync(join(cwd, "loading"))).toBe(true);
  expect(await run("run", "echo", "--message", "alone")).toMatchObject({ code: 0, stderr: "" });
  expect(existsSync(announcementFile(recordDirectory(state)))).toBe(false);
  writeFileSync(join(cwd, "go"), "");
  await coordinator;
  expect(await run("run", "echo", "--message", "served")).toMatchObject({ code: 0, stderr: "" });
  expect((await run("runners", "list")).stdout).toContain("online\tslow");
});

it("runs at once after `drover up` was killed, and ends the run that a killed `drover run` left", async () => {
  const { cwd, run, json, up } = createProject();
  writeFileSync(join(cwd, "long.sh"), "#!/bin/sh\necho begun >&2\nexec sleep 1000\n", { mode: 0o755 });
  const profile = { type: "procedural", agents_dir: "./agents-here" };
  for (const name of ["profiles", "agents-here"]) mkdirSync(join(cwd, name));
  writeFileSync(join(cwd, "profiles", "mine.json"), JSON.stringify(profile));
  writeFileSync(
    join(cwd, "agents-here", "long.yaml"),
    `name: long\ncommand: ${join(cwd, "long.sh")}\nmax_attempts: 3\n`,
  );
  await (await up()).end("SIGKILL");
  expect(await run("run", "echo", "--message", "hi")).toMatchObject({ code: 0, stderr: "" });

  const [first, second] = await Promise.all(["run", "run"].map(() => startLongRun(cwd)));
  const longRun = (await json("runs", "list", "--agent", "long", "--status", "running", "--limit", "1")) as {
    run_id: string;
  };
  await first!.end("SIGKILL");
  await second!.end("SIGKILL");
  expect(await run("run", "echo", "--message", "hi")).toMatchObject({ code: 0, stderr: "" });
  expect(await json("runs", "show", longRun.run_id)).toMatchObject({
    status: "failed",
    reason: "runner_lost",
    attempt: 1,
  });
  expect((await run("runs", "list", "--status", "running")).stdout).toBe("");
  expect(
    readdirSync(runnersDirectory(recordDirectory(join(cwd, "state")))).filter((name) => name.startsWith("mine-")),
  ).toHaveLength(1);
  expect((await run("audit", "verify")).code).toBe(0);
});

it("runs beside a `drover runner` of another coordinator that has the same profile and state directory", async () => {
  const otherProject = createProject();
  const coordinator = await otherProject.up();
  const { url } = JSON.parse(readFileSync(announcementFile(recordDirectory(otherProject.state)), "utf8"));
  const token = readFileSync(tokenFile(recordDirectory(otherProject.state), "token"), "utf8").trim();
  const { cwd, env, run } = createProject();
  const remoteEnv = { ...env, DROVER_API_URL: url, DROVER_API_KEY: token };
  const runner = await startDrover(["runner", "-x", "echo"], { cwd, env: remoteEnv, ready: /^Offers echo/m });
  const results = await Promise.all([1, 2, 3].map((n) => run("run", "echo", "--message", `${n}`)));
  expect(results.map(({ code, stderr }) => [code, stderr])).toEqual([1, 2, 3].map(() => [0, ""]));
  expect((await run("runs", "list", "--status", "completed")).stdout.trim().split("\n")).toHaveLength(3);
  expect((await otherProject.run("runs", "list")).stdout).toBe("");
  expect(await runner.end("SIGTERM")).toBe(0);
  expect(await coordinator.end("SIGTERM")).toBe(0);
});

/** Starts `drover run` and waits until its command is running. */
function startLongRun(cwd: string): Promise<DroverProcess> {
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  return startDrover(["run", "long"], { cwd, env, ready: /begun/ });
}

it("a session of `drover run` continues under a later `drover up` and after that has stopped", async () => {
  const { cwd, run, up } = createProject();
  writeScribe(cwd);
  const order = (remember: string): string[] => ["--prompt", JSON.stringify({ remember })];
  expect((await run("run", "scribe", ...order("one"))).stdout).toBe("one\n");
  const [id = ""] = (await run("sessions", "list")).stdout.split("\t");
  const coordinator = await up();
  expect(await run("sessions", "resume", id, ...order("two"))).toMatchObject({ code: 0, stdout: "one > two\n" });
  await coordinator.end("SIGKILL");
  expect(await run("sessions", "resume", id, ...order("three"))).toMatchObject({ stdout: "one > two > three\n" });
});
