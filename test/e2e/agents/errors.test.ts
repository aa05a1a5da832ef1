import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { recordDirectory, runsDirectory, tmpDirectory, tokenFile } from "../../../src/model/state-layout.ts";
import { createDirectory } from "../drover.ts";
import { type Gate, openGate } from "./gate.ts";
import { type DroverProcess, startDrover } from "../start-drover.ts";
import { waitForRunEnd, listEvents, filesBelow, listFilePaths, processesOf, show, submit } from "./runs.ts";

/** An executor that does what its parameter says, with real processes. */
const executor = `
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { defineExecutor } from "drover";
const scripts = {
  exit: "printf 'wrong%.0s' $(seq 400) >&2; exit 7",
  sleep: "echo begun > begun.txt; sleep 3600 & sleep 3600",
  silent: "true",
  files: "echo one > a.txt; head -c 3000000 /dev/urandom > b.bin; echo three > c.txt",
};
export const executor = defineExecutor({
  name: "table",
  async execute({ parameters, invocation, runCli, homeDir }) {
    appendFileSync(join(homeDir, "marks.txt"), invocation.run_id + "\\n");
    if (parameters.what === "throw") throw new TypeError("a defect of the executor, with the password hunter2");
    await runCli({ command: ["/bin/sh", "-c", scripts[parameters.what]] });
  },
});
`;

const gates: Gate[] = [];
afterEach(async () => {
  for (const gate of gates.splice(0)) await gate.stop();
});

/** A coordinator, a gate in front of it that tests can block, and a runner with the executor. */
async function setUp(options: { env?: Record<string, string>; runners?: number } = {}) {
  const cwd = createDirectory();
  const state = join(cwd, "state");
  for (const path of ["profiles", "executors/agents"]) mkdirSync(join(cwd, path), { recursive: true });
  writeFileSync(join(cwd, "executors", "table.mjs"), executor);
  const profile = { type: "table", module: "./executors/table.mjs", agents_dir: "./executors/agents", slots: 8 };
  writeFileSync(join(cwd, "profiles", "table.json"), JSON.stringify(profile));
  const agent = { name: "table", type: "autonomous", executor: "table" };
  writeFileSync(join(cwd, "executors", "agents", "table.json"), JSON.stringify(agent));
  const limitedAgent = { ...agent, name: "brief", timeout_seconds: 8 };
  writeFileSync(join(cwd, "executors", "agents", "brief.json"), JSON.stringify(limitedAgent));

  const gate = await openGate();
  gates.push(gate);
  let coordinator: DroverProcess | null = null;
  const startCoordinator = async (): Promise<void> => {
    const env = { DROVER_STATE_DIR: state };
    coordinator = await startDrover(["coordinator", "--port", "0", "--public-url", gate.url], {
      cwd,
      env,
      ready: /^Serving \S+/m,
    });
    gate.target = /^Serving (\S+)/m.exec(coordinator.output)?.[1] ?? "";
  };
  await startCoordinator();
  const token = readFileSync(tokenFile(recordDirectory(state), "token"), "utf8").trim();
  const runners = await Promise.all(
    Array.from({ length: options.runners ?? 1 }, (_one, index) => {
      const env = {
        HOME: cwd,
        DROVER_STATE_DIR: join(cwd, `runner-${index}`),
        DROVER_API_URL: gate.url,
        DROVER_API_KEY: token,
        ...options.env,
      };
      return startDrover(["runner", "-x", "table", "--name", `r${index}`], { cwd, env, ready: /^Offers table/m });
    }),
  );
  const call = async <T>(method: string, path: string, body?: unknown): Promise<{ status: number; json: T }> => {
    const response = await fetch(`${gate.target}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, json: (text === "" ? null : JSON.parse(text)) as T }; // The test knows the type.
  };
  return {
    cwd,
    state,
    gate,
    runners,
    call,
    ask: (what: string, agent_name = "table") => submit({ call }, { agent_name, parameters: { what } }),
    readMarks: () => readFileSync(join(cwd, "marks.txt"), "utf8").trim().split("\n"),
    async killCoordinator() {
      await coordinator?.end("SIGKILL");
    },
    startAgain: startCoordinator,
  };
}

test("each kind of failure has its reason and leaves no process or temporary file", async () => {
  const setup = await setUp();
  const [exit, timedOut, silent, thrown] = await Promise.all([
    setup.ask("exit"),
    setup.ask("sleep", "brief"),
    setup.ask("silent"),
    setup.ask("throw"),
  ]);
  expect(await waitForRunEnd(setup, exit.run_id)).toMatchObject({
    status: "failed",
    reason: "exit_nonzero",
    exit_code: 7,
    error: expect.stringMatching(/^(wrong)+\w*\n\[\.\.\.\]\n\w*(wrong)+$/) as string,
  });
  expect(await waitForRunEnd(setup, timedOut.run_id)).toMatchObject({ status: "failed", reason: "timeout" });
  expect(await listFilePaths(setup, timedOut.run_id)).toEqual(["begun.txt"]);
  expect(await waitForRunEnd(setup, silent.run_id)).toMatchObject({ status: "failed", reason: "no_output" });
  const internal = await waitForRunEnd(setup, thrown.run_id);
  expect(internal).toMatchObject({ status: "failed", reason: "internal" });
  // The run's error is a sentence; the stack trace goes to the runner's log.
  expect(internal.error).toMatch(/failed unexpectedly/);
  expect(JSON.stringify([internal, await listEvents(setup, thrown.run_id)])).not.toContain("hunter2");
  expect(setup.runners[0]?.output).toMatch(/a defect of the executor[^]*\n\s+at .*execute/);
  for (const { run_id } of [exit, timedOut, silent, thrown]) expect(processesOf(run_id)).toEqual([]);
  await expect.poll(() => filesBelow(tmpDirectory(runsDirectory(join(setup.cwd, "runner-0"))))).toEqual([]);
});

test("an upload refused by the coordinator leaves no file of the run on record", async () => {
  const setup = await setUp();
  let uploads = 0;
  // The first of three uploads passes.
  setup.gate.decide = (path) => (path.startsWith("/runner/files") && ++uploads > 1 ? { status: 413 } : "pass");
  const run = await waitForRunEnd(setup, (await setup.ask("files")).run_id);
  expect(run).toMatchObject({ status: "failed", reason: "upload_failed" });
  expect(run.error).toContain("the coordinator refused b.bin");
  expect(await listFilePaths(setup, run.run_id)).toEqual([]);
  expect(await listEvents(setup, run.run_id)).not.toContainEqual(expect.objectContaining({ type: "file" }));
});

test("a coordinator that dies in the middle of an upload gets every file complete after it returns", async () => {
  const setup = await setUp();
  const interrupted = new Promise<void>((resolve) => {
    setup.gate.decide = (path) => {
      if (!path.startsWith("/runner/files") || !path.includes("size=3000000")) return "pass";
      resolve();
      return { breakAfterBytes: 1_000_000 };
    };
  });
  const { run_id } = await setup.ask("files");
  await interrupted;
  await setup.killCoordinator();
  setup.gate.decide = () => "pass";
  await setup.startAgain();
  expect(await waitForRunEnd(setup, run_id)).toMatchObject({ status: "completed", attempt: 1 });
  expect(await listFilePaths(setup, run_id)).toEqual(["a.txt", "b.bin", "c.txt"]);
  const blobs = filesBelow(join(setup.state, "blobs"));
  expect(blobs.filter((path) => !/^[0-9a-f]+$/.test(path.split("/").at(-1) ?? ""))).toEqual([]);
  expect(setup.readMarks()).toEqual([run_id]);
});

test("the runner retries an unreachable coordinator with backoff until it is back", async () => {
  const setup = await setUp({ env: { POLL_INTERVAL_SECONDS: "0.2" } });
  setup.gate.decide = () => "break";
  setup.gate.disconnectAll();
  const since = performance.now();
  // Each attempt opens a connection, which starts with a proof.
  const tries = () => setup.gate.requests.filter(({ at, what }) => at > since && what === "POST /proof");
  await expect.poll(() => tries().length).toBeGreaterThan(0);
  const { run_id } = await setup.ask("exit");
  await expect.poll(() => tries().length).toBeGreaterThan(4);
  const times = tries().map(({ at }) => at);
  const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0));
  expect(Math.max(...gaps)).toBeGreaterThan(2 * Math.min(...gaps));
  expect((await show(setup, run_id)).status).toBe("pending");
  setup.gate.decide = () => "pass";
  expect(await waitForRunEnd(setup, run_id)).toMatchObject({ reason: "exit_nonzero", attempt: 1 });
});

test("a run claimed by another runner is skipped, so that each runs once", async () => {
  const setup = await setUp({ runners: 2 });
  // Not defined by a runner, so that both runners may claim its runs.
  const shared = { type: "autonomous", executor: "table", demands: { executor_type: "table" } };
  expect(await setup.call("PUT", "/agents/shared", shared)).toMatchObject({ status: 200 });
  const submitted = await Promise.all(Array.from({ length: 12 }, () => setup.ask("exit", "shared")));
  for (const { run_id } of submitted) expect(await waitForRunEnd(setup, run_id)).toMatchObject({ attempt: 1 });
  expect(setup.readMarks().toSorted()).toEqual(submitted.map(({ run_id }) => run_id).toSorted());
});
