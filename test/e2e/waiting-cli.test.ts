import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Run } from "../../src/model/run.ts";
import { recordDirectory, tokenFile } from "../../src/model/state-layout.ts";
import { reservePort } from "../reserve-port.ts";
import { openTerminal, keys, terminalTest } from "./at-terminal.ts";
import { drover, createDirectory } from "./drover.ts";
import { createProject } from "./create-project.ts";
import { startRunner, startCoordinator } from "./coordinator-process.ts";
import { startDrover } from "./start-drover.ts";

const parameters = {
  type: "object",
  properties: {
    target: { type: "string", enum: ["staging", "production"], description: "Where to deploy" },
    tries: { type: "integer", default: 3 },
  },
  required: ["target"],
  additionalProperties: false,
};

async function serveAgent() {
  const cwd = createDirectory();
  const coordinator = await startCoordinator(cwd);
  await coordinator.call("PUT", "/agents/deploy", { command: "sh deploy.sh", parameters_schema: parameters });
  const env = {
    DROVER_API_URL: coordinator.url,
    DROVER_API_KEY: coordinator.token,
    DROVER_STATE_DIR: join(cwd, "none"),
  };
  return { cwd, coordinator, env, run: (...args: string[]) => drover(args, { cwd, env }) };
}

it("shows an agent's parameters with `run AGENT --help`, and names that agent after a wrong parameter", async () => {
  const { run } = await serveAgent();
  const help = await run("run", "deploy", "--help");
  expect(help.code).toBe(0);
  expect(help.stdout).toContain("drover run deploy --target staging");
  expect(help.stdout).toMatch(/--target +one of staging, production, required\. Where to deploy/);
  expect(help.stdout).toMatch(/--tries +a whole number, default 3/);
  for (const args of [[], ["--tries", "many", "--target", "staging"], ["--target", "staging", "--color", "red"]]) {
    const refused = await run("run", "deploy", ...args);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("See `drover run deploy --help`.");
    expect(refused.stderr).not.toContain("GET /docs");
  }
  const unscheduled = await run("schedules", "add", "deploy", "hourly", "--every", "1h");
  expect(unscheduled.stderr).toContain("See `drover run deploy --help`. For example: --target staging\n");
});

it("shows an agent's parameters without a coordinator", async () => {
  const { run, cwd } = createProject();
  mkdirSync(join(cwd, "agents"));
  writeFileSync(
    join(cwd, "agents", "deploy.yaml"),
    `name: deploy\ncommand: "true"\nparameters_schema: ${JSON.stringify(parameters)}\n`,
  );
  const help = await run("run", "deploy", "--help");
  expect(help.stdout).toMatch(/--target +one of staging, production, required/);
  expect((await run("run", "unknown", "--help")).stderr).toContain("DROVER-API-014");
});

it("says what a pending run waits for, and `runs wait` ends at its timeout or with the run's own code", async () => {
  const { run, cwd, env, coordinator } = await serveAgent();
  const { json: pending } = await coordinator.call<Run>("POST", "/runs", {
    agent_name: "deploy",
    parameters: { target: "staging" },
  });
  const why = await run("runs", "why", "last");
  expect(why.stdout).toContain("The run is pending:");
  expect(why.stdout).toContain("No runner is online.");
  expect(JSON.parse((await run("runs", "why", pending.run_id, "--json")).stdout)).toMatchObject({ status: "pending" });
  const waitWithTimeout = await run("runs", "wait", "last", "--timeout", "0.1");
  expect(waitWithTimeout).toMatchObject({ code: 124, stdout: "" });
  expect(waitWithTimeout.stderr).toContain("is still pending after 0.1 s");

  const quietRun = run("run", "deploy", "--target", "production", "--quiet");
  const waitResult = run("runs", "wait", pending.run_id);
  writeFileSync(join(cwd, "deploy.sh"), "exit 7");
  mkdirSync(join(cwd, "profiles"));
  writeFileSync(join(cwd, "profiles", "here.json"), JSON.stringify({ type: "procedural" }));
  await startDrover(["run", "deploy", "--target", "production"], {
    cwd,
    env,
    ready: /^drover: waiting: No runner is online\.$/m,
  });
  await startRunner(coordinator, cwd, "one", ["-x", "./profiles/here.json"]);
  expect(await waitResult).toMatchObject({ code: 7, stdout: `${pending.run_id}\tfailed\n` });
  const quiet = await quietRun;
  expect(quiet.code).toBe(7);
  expect(quiet.stderr).not.toContain("waiting");
});

it("exits like `drover run` from `runs wait` without a coordinator: an autonomous run fails with 1, a command with its code", async () => {
  const { run, cwd } = createProject();
  for (const directory of ["profiles", "agents-frail"]) mkdirSync(join(cwd, directory));
  const module = `export const createExecutor = () => ({
    name: "frail",
    can: { resume: false, fork: false, ask: false, input: false },
    run: async () => ({ status: "failed", reason: "exit_nonzero", message: "It gave up.", exit_code: 7 }),
  });`;
  writeFileSync(join(cwd, "frail.mjs"), module);
  const profile = { type: "frail", module: "./frail.mjs", agents_dir: "./agents-frail" };
  writeFileSync(join(cwd, "profiles", "frail.json"), JSON.stringify(profile));
  writeFileSync(join(cwd, "agents-frail", "frail.yaml"), "name: frail\ntype: autonomous\nexecutor: frail\n");
  mkdirSync(join(cwd, "agents"));
  writeFileSync(join(cwd, "agents", "seven.yaml"), `name: seven\ncommand: sh -c "exit 7"\n`);
  for (const [args, code] of [
    [["run", "frail", "--prompt", "try"], 1],
    [["run", "seven"], 7],
    [["exec", "exit 7"], 7],
  ] as const) {
    expect((await run(...args)).code).toBe(code);
    const waited = await run("runs", "wait", "last", "--json");
    expect(waited.code).toBe(code);
    expect(JSON.parse(waited.stdout)).toMatchObject({ status: "failed", exit_code: 7 });
  }
});

terminalTest("`runs list --watch` survives a restart of the coordinator, and ends with 130 on Ctrl-C", async () => {
  const cwd = createDirectory();
  const port = String(await reservePort());
  const state = { DROVER_STATE_DIR: join(cwd, "state") };
  const start = () => startDrover(["coordinator", "--port", port], { cwd, env: state, ready: /^Serving /m });
  const first = await start();
  expect((await drover(["exec", "echo watched"], { cwd, env: state })).code).toBe(0);
  const token = readFileSync(tokenFile(recordDirectory(state.DROVER_STATE_DIR), "token"), "utf8").trim();
  const env = {
    DROVER_API_URL: `http://127.0.0.1:${port}`,
    DROVER_API_KEY: token,
    DROVER_STATE_DIR: join(cwd, "none"),
  };
  const terminal = openTerminal(["runs", "list", "--watch"], { cwd, env, columns: 80 });
  await terminal.waitForText("echo watched", "1 run. Press Ctrl-C to stop watching.");
  await first.end("SIGTERM");
  await terminal.waitForText("echo watched", "Trying again every 2 s: ");
  await start();
  expect((await drover(["exec", "echo later"], { cwd, env: state })).code).toBe(0);
  await terminal.waitForText("echo later", "2 runs.");
  terminal.press(keys.ctrlC);
  expect(await terminal.exitCode).toBe(130);
});
