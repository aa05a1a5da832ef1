import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openTerminal, terminalTest } from "./at-terminal.ts";
import { drover, createDirectory, root } from "./drover.ts";
import { createProject } from "./create-project.ts";
import { createScriptedProject } from "./scripted-project.ts";
import {
  startCommand,
  startRunner,
  runToEnd,
  startCoordinator,
  type CoordinatorProcess,
} from "./coordinator-process.ts";

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

/** A coordinator that has two agents, with a runner that has one slot. */
async function startFleet(): Promise<{ cwd: string; coordinator: CoordinatorProcess }> {
  const cwd = createDirectory();
  mkdirSync(join(cwd, "agents"));
  const agents = { long: "sleep 600", fail: "false" };
  for (const [name, command] of Object.entries(agents))
    writeFileSync(join(cwd, "agents", `${name}.yaml`), `name: ${name}\ncommand: "${command}"\n`);
  const coordinator = await startCoordinator(cwd);
  await startRunner(coordinator, cwd, "one", ["-x", "procedural", "--slots", "1"]);
  return { cwd, coordinator };
}

const makeFile = { name: "command.run", input: { command: "touch made.txt" } };

/** A project with a run that is parked until its question is answered, and one that is parked because its budget is spent. */
async function parkRuns() {
  const project = createScriptedProject([{ text: "May I?", tools: [makeFile] }, { text: "Thank you." }], {
    park_after_seconds: 0.2,
  });
  const spender = {
    name: "spender",
    system_prompt: "You spend.",
    permissions: { mode: "bypassPermissions" },
    budget: { turns: 1 },
  };
  writeFileSync(join(project.cwd, "agents", "model", "spender.json"), JSON.stringify(spender));
  const run = (...args: string[]) => drover(args, project);
  for (const args of [
    ["run", "talker", "--attended"],
    ["run", "spender"],
  ]) {
    const { code, stderr } = await run(...args, "--prompt", "go");
    expect(code, stderr).toBe(75);
  }
  const listed = (await run("runs", "list", "--json")).stdout.trim().split("\n");
  const [spentRunId, asking] = listed.map((line) => (JSON.parse(line) as { run_id: string }).run_id);
  return { ...project, run, spent: spentRunId!, asking: asking! };
}

describe("drover status", () => {
  it("shows open questions and parked runs, with what continues them", async () => {
    const { run, spent: spentRunId, asking } = await parkRuns();
    const { stdout } = await run("status");
    expect(stdout).toContain("1 open question, 2 parked");
    expect(stdout).toMatch(
      new RegExp(`Waiting for an answer\n${asking}\ttalker\t20\\S+Z\tcommand.run\ttouch made.txt\n`),
    );
    const parked = stdout.split("Parked\n")[1]!.trim().split("\n");
    expect(parked.map((line) => line.split("\t"))).toEqual([
      [spentRunId, "spender", expect.stringMatching(/^budget spent/), `drover runs resume ${spentRunId}`],
      [asking, "talker", expect.stringMatching(/^waits for an answer/), "when it is answered"],
    ]);
    expect(JSON.parse((await run("status", "--json")).stdout).activity).toMatchObject({
      questions: { count: 1, items: [{ run_id: asking, tool: "command.run" }] },
      parked: { count: 2, items: [{ run_id: spentRunId, parked_why: "budget" }, { parked_why: "approval" }] },
    });
  });

  terminalTest("has short ids, relative times and colours on a terminal", async () => {
    const { run, cwd, env, spent: spentRunId, asking } = await parkRuns();
    await run("exec", "exit 3");
    const terminal = openTerminal(["status"], { cwd, env, columns: 160 });
    expect(await terminal.exitCode).toBe(1);
    const shown = terminal.shown();
    const cyan = (text: string): string => `\u001b[36m${text}\u001b[39m`;
    for (const id of [spentRunId, asking]) {
      expect(shown).toContain(cyan(id.slice(-8)));
      expect(shown).not.toContain(id);
    }
    expect(shown).toContain(`drover runs resume ${spentRunId.slice(-8)}`);
    expect(shown).toMatch(/\[2m\d+[sm] ago/);
    expect(shown).toContain("\u001b[31mexit_nonzero\u001b[39m");
  });

  it("says what serves, who runs what, what is pending and why, and what failed", async () => {
    const { cwd, coordinator } = await startFleet();
    const env = { DROVER_STATE_DIR: coordinator.state };
    const failed = await runToEnd(coordinator, { agent_name: "fail" });
    expect(failed.status).toBe("failed");
    const first = (await coordinator.call<{ run_id: string }>("POST", "/runs", { agent_name: "long" })).json;
    await expect
      .poll(async () => (await coordinator.call<{ status: string }>("GET", `/runs/${first.run_id}`)).json.status, {
        timeout: 60_000,
      })
      .toBe("running");
    const second = (await coordinator.call<{ run_id: string }>("POST", "/runs", { agent_name: "long" })).json;
    const { code, stdout, stderr } = await drover(["status"], { cwd, env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(
      new RegExp(`serving +${coordinator.url}, version ${version.replaceAll(".", "\\.")}, SQLite\n`),
    );
    expect(stdout).toMatch(/since +20\d\d-\S+Z \(\d+s ago\)/);
    expect(stdout).toContain(`${coordinator.state} (DROVER_STATE_DIR)`);
    expect(stdout).toContain("1 running, 1 pending, 0 open questions, 0 parked, 1 failed in the last 24 h");
    expect(stdout).toMatch(/^\S*procedural\S*\tonline\tprocedural\t\S+\t1 of 1\t/m);
    expect(stdout).toContain(`Running\n${first.run_id}\tlong\trunning\t`);
    expect(stdout).toMatch(new RegExp(`Pending\n${second.run_id}\tlong\t20\\d\\d-\\S+Z\t\\S+`));
    expect(stdout).toContain(`${failed.run_id}\tfail\texit_nonzero\t`);
    const json = JSON.parse((await drover(["status", "--json"], { cwd, env })).stdout);
    expect(json).toMatchObject({
      coordinator: { url: coordinator.url, version, engine: "sqlite", role: "admin" },
      state: { directory: coordinator.state },
      activity: {
        runners: [{ running: 1, slots: 1 }],
        running: { count: 1 },
        pending: { items: [{ run_id: second.run_id, why: expect.any(Array) }] },
        failed: { items: [{ run_id: failed.run_id }] },
      },
    });
    await Promise.all([first, second].map(({ run_id }) => coordinator.call("POST", `/runs/${run_id}/stop`)));
  });

  it("shows an ordinary user only what belongs to them", async () => {
    const { cwd, coordinator } = await startFleet();
    await runToEnd(coordinator, { agent_name: "fail" });
    const { json } = await coordinator.call<{ token: string }>("POST", "/tokens", { role: "user", subject: "ada" });
    const env = { DROVER_API_URL: coordinator.url, DROVER_API_KEY: json.token };
    const { code, stdout } = await drover(["status"], { cwd, env });
    expect(code).toBe(0);
    expect(stdout).toMatch(/you are +ada \(user\)/);
    expect(stdout).toContain("on the coordinator's machine");
    expect(stdout).toContain("0 failed in the last 24 h");
    expect(stdout).not.toContain("exit_nonzero");
  });

  it("says how to start if nothing serves, shows the record, and exits with 1", async () => {
    const { run, state } = createProject();
    const empty = await run("status");
    expect(empty.code).toBe(1);
    expect(empty.stdout).toMatch(/serving +nothing: no coordinator is running here/);
    expect(empty.stdout).toContain(state);
    expect(empty.stderr).toContain("Start a coordinator and a runner here: drover up\n");
    await run("exec", "exit 3");
    const recorded = await run("status");
    expect(recorded.code).toBe(1);
    expect(recorded.stdout).toContain("1 failed in the last 24 h");
    expect(JSON.parse((await run("status", "--json")).stdout)).toMatchObject({ coordinator: null });
  });

  it("says that a coordinator named by DROVER_API_URL does not answer", async () => {
    const env = { DROVER_API_URL: "http://127.0.0.1:9", DROVER_API_KEY: "drv_x" };
    const { code, stderr } = await drover(["status"], { cwd: createDirectory(), env });
    expect(code).toBe(125);
    expect(stderr).toContain("http://127.0.0.1:9");
  });

  it("shows what `drover up` serves, in the same directory", async () => {
    const cwd = createDirectory();
    const env = { DROVER_STATE_DIR: join(cwd, "state") };
    const output = await startCommand(["up", "--port", "0", "-x", "echo"], {
      cwd,
      env,
      ready: /^Press Ctrl-C to stop/m,
    });
    const { code, stdout } = await drover(["status"], { cwd, env });
    expect(code).toBe(0);
    expect(stdout).toContain(/Drover is up at (\S+)/.exec(output)?.[1]);
    expect(stdout).toMatch(/^\S+\tonline\techo\t/m);
  });
});
