import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { drover, createDirectory } from "./drover.ts";
import { startDrover } from "./start-drover.ts";

/** Does what its parameter says. Tests look for lines of this file in stack traces. */
const executor = `import { defineExecutor, RunFailure } from "drover";

type What = "block" | "greet" | "bad event" | "bad reason" | "throw" | "hang";

export const executor = defineExecutor({
  name: "parrot",
  async execute({ parameters, context, runCli }) {
    const what = parameters["what"] as What;
    if (what === "bad event") await context.emit({ type: "tool_use", name: "shell", input: {} } as never);
    if (what === "bad reason") throw new RunFailure("tired" as never, "no more crackers");
    if (what === "throw") throw new TypeError("a defect on line 11");
    if (what === "block") for (;;);
    if (what === "hang") await runCli({ command: ["sh", "-c", "echo begun; exec sleep 1000"] });
    return JSON.stringify(parameters);
  },
});
`;

/** Creates the project of an executor author, with the command line in it. */
function createProject() {
  const cwd = createDirectory();
  for (const path of ["profiles", "executors/agents"]) mkdirSync(join(cwd, path), { recursive: true });
  writeFileSync(join(cwd, "executors", "parrot.ts"), executor);
  const profile = { type: "parrot", module: "./executors/parrot.ts", agents_dir: "./executors/agents" };
  writeFileSync(join(cwd, "profiles", "parrot.json"), JSON.stringify(profile));
  const agent = { name: "parrot", type: "autonomous", executor: "parrot" };
  writeFileSync(join(cwd, "executors", "agents", "parrot.json"), JSON.stringify(agent));
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  return { cwd, env, run: (...args: string[]) => drover(["run", ...args], { cwd, env }) };
}

test("`drover run` runs a custom executor from its current file, without a coordinator", async () => {
  const { cwd, run } = createProject();
  expect(await run("parrot", "--what", "greet")).toMatchObject({ code: 0, stdout: '{"what":"greet"}\n' });
  writeFileSync(join(cwd, "executors", "parrot.ts"), executor.replace("JSON.stringify(parameters)", '"changed"'));
  expect(await run("parrot", "--what", "greet")).toMatchObject({ code: 0, stdout: "changed\n" });
});

test("warns about mistakes of an executor even without a terminal, but not with --quiet", async () => {
  const { run } = createProject();
  const event = await run("parrot", "--what", "bad event");
  expect(event).toMatchObject({ code: 0, stdout: '{"what":"bad event"}\n' });
  const eventFault = "tool_use: tool_use_id: expected string, received undefined";
  expect(event.stderr).toContain(
    `drover: warning: The executor parrot sent an invalid event, which was dropped: ${eventFault}\n`,
  );
  expect((await run("parrot", "--what", "bad event", "--quiet")).stderr).toBe("");
  const reason = await run("parrot", "--what", "bad reason");
  expect(reason.code).toBe(1);
  expect(reason.stderr).toContain('drover: warning: The executor parrot failed with the unknown reason "tired"');
  expect(reason.stderr).toContain("drover: failed (internal): no more crackers\n");
});

test("the stack trace of a bug names the line in the source file", async () => {
  const { cwd, run } = createProject();
  const { code, stderr } = await run("parrot", "--what", "throw");
  expect(code).toBe(1);
  expect(stderr).toMatch(/a defect on line 11\n\s+at /);
  expect(stderr).toContain(`${join(cwd, "executors", "parrot.ts")}:11:`);
  expect(stderr).not.toContain("cache/modules");
});

test("--timeout applies to the run; an exec option becomes a parameter, with a warning", async () => {
  const { run } = createProject();
  const timedOut = await run("parrot", "--what", "hang", "--timeout", "1");
  expect(timedOut.code).toBe(124);
  expect(timedOut.stderr).toContain("drover: failed (timeout): ");
  const cwd = await run("parrot", "--what", "greet", "--cwd", "/tmp");
  expect(cwd).toMatchObject({ code: 0, stdout: '{"what":"greet","cwd":"/tmp"}\n' });
  expect(cwd.stderr).toMatch(
    /^drover: warning: --cwd is an option of drover exec, not of drover run\. It is passed to the agent as the parameter cwd\.\n1 file: .*\n$/,
  );
});

test.each([
  ["an unknown agent", ["parrott"], "DROVER-SUB-001", "Did you mean parrot?"],
  ["an unknown agent with an option passed twice", ["parrott", "--v", "1", "--v", "2"], "DROVER-SUB-001", "parrot?"],
  ["an invalid time", ["parrot", "--timeout", "soon"], "DROVER-USE-005", "--timeout soon"],
  ["a time that is too long", ["parrot", "--timeout", "1e9"], "DROVER-API-006", "timeout_seconds"],
  ["parameters that do not fit", ["disk-usage", "--top", "-1"], "DROVER-PAR-001", "parameters.top: "],
])("exits with 2 for %s", async (_what, words, code, expected) => {
  const result = await createProject().run(...words);
  expect(result).toMatchObject({ code: 2, stdout: "" });
  expect(result.stderr).toContain(code);
  expect(result.stderr).toContain(expected);
});

test("says who stopped a run", async () => {
  const { cwd, env, run } = createProject();
  const watched = run("parrot", "--what", "hang");
  const ids = async () => (await drover(["runs", "list", "--status", "running", "--json"], { cwd, env })).stdout;
  await expect.poll(ids).toContain("run_id");
  const { run_id } = JSON.parse(await ids()) as { run_id: string };
  expect((await drover(["runs", "stop", run_id], { cwd, env })).code).toBe(0);
  const { code, stderr } = await watched;
  expect(code).toBe(130);
  expect(stderr).toMatch(/^drover: cancelled: Stopped by \S+\.\n {2}drover runs show /m);
});

test("`up` suggests a run of an available agent", async () => {
  const { cwd, env } = createProject();
  const ready = /Press Ctrl-C to stop/;
  const upWithParrot = await startDrover(["up", "--port", "0", "-x", "parrot"], { cwd, env, ready });
  expect(upWithParrot.output).toContain('  drover run parrot --prompt "..."\n  drover agents list\n');
  expect(upWithParrot.output).not.toContain("drover run echo");
  await upWithParrot.end("SIGTERM");
  const upWithAll = await startDrover(["up", "--port", "0"], { cwd, env, ready });
  expect(upWithAll.output).toContain('  drover run echo --message "Hello World"\n');
});

test("two signals stop `up` at once even if an executor blocks its thread, and leave no process", async () => {
  const { cwd, env } = createProject();
  const up = await startDrover(["up", "--port", "0", "-x", "parrot"], { cwd, env, ready: /Press Ctrl-C to stop/ });
  let pid = 0;
  const watching = drover(["run", "parrot", "--what", "block"], { cwd, env, onSpawn: (spawned) => (pid = spawned) });
  const list = async () => (await drover(["runs", "list", "--status", "running", "--json"], { cwd, env })).stdout;
  await expect.poll(list).toContain("run_id");
  const { run_id } = JSON.parse(await list()) as { run_id: string };
  const first = up.end("SIGTERM");
  process.kill(up.pid, "SIGINT");
  expect(await first).toBe(0);
  // A process's environment contains the id of its run.
  const leftProcesses = readdirSync("/proc").filter(
    (each) => /^\d+$/.test(each) && readEnvironment(each).includes(run_id),
  );
  expect(leftProcesses).toEqual([]);
  process.kill(pid, "SIGKILL");
  await watching;
});

function readEnvironment(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch (error) {
    if (error instanceof Error && "code" in error && ["ENOENT", "ESRCH", "EACCES"].includes(String(error.code)))
      return "";
    throw error;
  }
}

test("`runs show` prints the result of a run whose program wrote to stdout, and the run's own duration", async () => {
  const { run, cwd, env } = createProject();
  expect((await run("word-count", "--text", "to be or not to be")).code).toBe(0);
  const { stdout } = await drover(["runs", "show", "last"], { cwd, env });
  expect(stdout).toMatch(/^ +program +wc -w \(exit 0\)$/m);
  expect(stdout).not.toMatch(/^ +command /m);
  expect(stdout).toContain("\nresult\n6 words, 4 of them different\n");
  expect(stdout).toContain('\nresult data\n{\n  "to": 2,');
  const { started_at, finished_at } = JSON.parse(
    (await drover(["runs", "show", "last", "--json"], { cwd, env })).stdout,
  );
  const ms = Date.parse(finished_at) - Date.parse(started_at);
  expect(stdout).toMatch(new RegExp(`^ +took +${ms < 1000 ? `${ms}ms` : `${(ms / 1000).toFixed(1)}s`}$`, "m"));
});

test("`drover run` and `agents show` use the project's agent if a bundled agent has the same name", async () => {
  const cwd = createDirectory();
  for (const name of ["profiles", "own"]) mkdirSync(join(cwd, name));
  writeFileSync(join(cwd, "profiles", "aaa.json"), '{ "type": "procedural", "agents_dir": "./own" }');
  writeFileSync(
    join(cwd, "own", "echo.json"),
    '{ "name": "echo", "type": "procedural", "command": "echo my own echo" }',
  );
  expect(await drover(["run", "echo"], { cwd })).toMatchObject({ code: 0, stdout: "my own echo\n" });
  expect(JSON.parse((await drover(["agents", "show", "echo", "--json"], { cwd })).stdout)).toMatchObject({
    command: "echo my own echo",
  });
});
