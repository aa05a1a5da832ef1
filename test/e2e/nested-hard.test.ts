import { existsSync, readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { expect, it } from "vitest";
import { findBwrap } from "../../src/process/sandbox.ts";
import { drover, createDirectory } from "./drover.ts";
import { droverCommand, listNestedCommands, createProject, readRecord } from "./nested-project.ts";
import { startRunner, runToEnd, startCoordinator } from "./coordinator-process.ts";
import { startDrover } from "./start-drover.ts";

const hasBwrap = findBwrap() !== null;
const nestedCommands = `${droverCommand} exec "echo one" || exit 1\n${droverCommand} run echo --message two || exit 2\n`;

it.each([
  ...(hasBwrap ? [["--isolation", "sandbox"]] : []),
  ["--isolation", "pid"],
  ["--isolation", "group"],
  ["--isolation", "none"],
  ["--env-mode", "replace", "--env", "PATH=/usr/bin:/bin"],
  ["--env-mode", "merge"],
  ["--run-id", "R1", "--task-id", "T1"],
])("nested commands of exec %s %s are recorded", async (...options) => {
  const project = createProject(nestedCommands, undefined);
  const result = await project.run(["exec", "sh script.sh", ...options]);
  expect(result).toMatchObject({ code: 0 });
  const runs = await readRecord(project);
  const outer = runs.find(({ agent_name }) => agent_name === "exec")!;
  expect(listNestedCommands(outer)).toEqual([["echo one", 0]]);
  expect(runs.find(({ agent_name }) => agent_name === "echo")?.parent_run_id).toBe(outer.run_id);
  if (options.includes("T1")) expect(outer.executions[0]!.start.correlation.task_id).toBe("T1");
});

it("nested commands of a remote runner, also in a sandbox, are recorded by its coordinator", async () => {
  for (const isolation of hasBwrap ? ["pid", "sandbox"] : ["pid"]) {
    const project = createProject(nestedCommands, undefined, { isolation });
    const coordinator = await startCoordinator(createDirectory());
    await startRunner(coordinator, project.cwd, "far", ["-x", "./profiles/here.json", "-x", "echo"]);
    const outer = await runToEnd(coordinator, { agent_name: "script" });
    expect(outer).toMatchObject({ status: "completed" });
    const { json } = await coordinator.call<{ items: { start: { command: string; reported_by?: string } }[] }>(
      "GET",
      `/executions?run_id=${outer.run_id}`,
    );
    expect(json.items.map(({ start }) => start.reported_by)).toEqual(["command", undefined]);
    const children = await coordinator.call<{ items: unknown[] }>("GET", `/runs?parent_run_id=${outer.run_id}`);
    expect(children.json.items).toMatchObject([{ agent_name: "echo", status: "completed" }]);
  }
});

it("records ten concurrent nested commands as ten executions", async () => {
  const project = createProject(
    `for n in 0 1 2 3 4 5 6 7 8 9; do ${droverCommand} exec "echo at once $n" & done; wait\n`,
    undefined,
  );
  expect((await project.run(["run", "script"])).code).toBe(0);
  const [outer] = await readRecord(project);
  const commands = listNestedCommands(outer!).map(([command, code]) => `${command} ${code}`);
  expect(commands.sort()).toEqual(Array.from({ length: 10 }, (_, n) => `echo at once ${n} 0`));
});

it("a killed nested exec is recorded with its start and ends as interrupted", async () => {
  const project = createProject(
    `${droverCommand} exec "kill -9 \\$PPID; sleep 600" --isolation none; exit 0\n`,
    undefined,
  );
  for (const words of [
    ["exec", "sh script.sh"],
    ["run", "script"],
  ]) {
    expect((await project.run(words)).code).toBe(0);
    const [outer] = await readRecord(project);
    expect(outer).toMatchObject({ status: "completed" });
    expect(listNestedCommands(outer!)).toEqual([["kill -9 $PPID; sleep 600", "interrupted"]]);
  }
});

it("everything reported before the outer Drover was killed is recorded, even if it was still unread", async () => {
  for (const words of [
    ["exec", "sh script.sh"],
    ["run", "script"],
  ]) {
    const project = createProject(
      `${droverCommand} exec "echo before"\n${droverCommand} exec "echo begun >&2; sleep 600"\n`,
      undefined,
    );
    const outer = await startDrover(words, { ...project, ready: /begun/ });
    await outer.end("SIGKILL");
    // The next command writes the ends that the killed one could not.
    expect((await project.run(["run", "echo", "--message", "next"])).code).toBe(0);
    const outerRun = (await readRecord(project)).find(({ agent_name }) => agent_name !== "echo")!;
    expect(outerRun).toMatchObject({ status: "failed", reason: "runner_lost" });
    expect(listNestedCommands(outerRun)).toEqual([
      ["echo before", 0],
      ["echo begun >&2; sleep 600", "interrupted"],
    ]);
    expect(readdirSync(join(project.cwd, "state", "runs", "nested"))).toEqual([]);
  }
});

it("a run's token gives access only to that run and its children, and ends with the run", async () => {
  const lines = `printf '%s' "$DROVER_API_KEY" > key; echo begun >&2\nwhile ! test -e go; do sleep 0.1; done\n`;
  const project = createProject(lines, undefined);
  const coordinator = await startCoordinator(createDirectory());
  await startRunner(coordinator, project.cwd, "far", ["-x", "./profiles/here.json"]);
  const { json: run } = await coordinator.call<{ run_id: string }>("POST", "/runs", { agent_name: "script" });
  await expect.poll(() => existsSync(join(project.cwd, "key")), { timeout: 60_000 }).toBe(true);
  await expect
    .poll(() => readFileSync(join(project.cwd, "key"), "utf8").length, { timeout: 60_000 })
    .toBeGreaterThan(70);
  const key = readFileSync(join(project.cwd, "key"), "utf8");
  const status = async (method: string, path: string, body?: unknown) =>
    (await coordinator.call<unknown>(method, path, body, key)).status;
  expect(await status("GET", `/runs/${run.run_id}`)).toBe(200);
  for (const path of ["/runs", "/tokens", "/executions", "/runners", "/sessions", "/audit", "/metrics", "/schedules"])
    expect(await status("GET", path)).toBe(403);
  for (const path of ["/tokens", "/runs/stop", "/runner/register", "/runner/report", "/backup", "/webhooks"])
    expect(await status("POST", path, {})).toBe(403);
  const otherRunId = (await coordinator.call<{ run_id: string }>("POST", "/runs", { agent_name: "script" })).json
    .run_id;
  expect(await status("GET", `/runs/${otherRunId}`)).toBe(404);
  expect(await status("POST", `/runs/${otherRunId}/stop`)).toBe(404);
  // The token determines the parent, whatever the request says.
  const child = await coordinator.call<{ run_id: string; parent_run_id: string }>(
    "POST",
    "/runs",
    { agent_name: "script", parent_run_id: otherRunId },
    key,
  );
  expect(child.json.parent_run_id).toBe(run.run_id);
  expect(await status("POST", `/runs/${child.json.run_id}/stop`)).toBe(200);
  await coordinator.call("POST", `/runs/${run.run_id}/stop`);
  await expect.poll(() => status("GET", `/runs/${run.run_id}`), { timeout: 60_000 }).toBe(401);
  expect(await status("POST", "/runs", { agent_name: "script" })).toBe(401);
});

it("the socket of a run without a coordinator accepts only that run's token and disappears with the run", async () => {
  const project = createProject(
    `printf '%s' "$DROVER_API_KEY" > key; printf '%s' "$DROVER_API_URL" > url\nwhile ! test -e go; do sleep 0.1; done\n`,
    undefined,
  );
  const endedRun = project.run(["run", "script"]);
  const text = (name: string) =>
    existsSync(join(project.cwd, name)) ? readFileSync(join(project.cwd, name), "utf8") : "";
  await expect.poll(() => text("url"), { timeout: 60_000 }).toMatch(/^unix:.+\/s$/);
  const socketPath = text("url").slice("unix:".length);
  await expect.poll(() => existsSync(socketPath), { timeout: 60_000 }).toBe(true);
  const ask = (path: string, token: string | null, method = "GET") =>
    new Promise<number>((resolve, reject) => {
      const headers = { host: "localhost", ...(token === null ? {} : { authorization: `Bearer ${token}` }) };
      request({ socketPath, path, method, headers }, (answer) => resolve(answer.resume().statusCode ?? 0))
        .once("error", reject)
        .end();
    });
  expect(await ask("/agents", text("key"))).toBe(200);
  expect(await ask("/agents", null)).toBe(401);
  expect(await ask("/agents", `drv_${"0".repeat(32)}`)).toBe(401);
  expect(
    await ask(
      "/agents",
      text("key").replace(/.$/, (last) => (last === "0" ? "1" : "0")),
    ),
  ).toBe(401);
  for (const path of ["/runs", "/tokens", "/health", "/docs", "/ui/"])
    expect(await ask(path, text("key"))).not.toBe(200);
  await drover(["exec", "touch go"], { cwd: project.cwd, env: project.env });
  expect((await endedRun).code).toBe(0);
  expect(existsSync(socketPath)).toBe(false);
  expect(readdirSync(join(project.cwd, "state", "runs", "nested"))).toEqual([]);
});
