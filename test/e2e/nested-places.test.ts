import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { findBwrap } from "../../src/process/sandbox.ts";
import { drover, createDirectory, isRoot, nobodyUid, root } from "./drover.ts";
import { droverCommand, listNestedCommands, type Project, createProject, readRecord } from "./nested-project.ts";
import { startRunner, runToEnd, startCoordinator } from "./coordinator-process.ts";
import { startDrover } from "./start-drover.ts";

const nestedCommands = `${droverCommand} exec "echo one" || exit 1\n${droverCommand} run echo --message two || exit 2\n`;

async function expectBothRecorded(project: Project): Promise<void> {
  const runs = await readRecord(project);
  const outer = runs.find(({ agent_name }) => agent_name === "script")!;
  expect(outer).toMatchObject({ status: "completed" });
  expect(listNestedCommands(outer)).toEqual([["echo one", 0]]);
  const child = runs.find(({ agent_name }) => agent_name === "echo");
  expect(child).toMatchObject({ status: "completed", parent_run_id: outer.run_id });
}

// Skipped without bwrap, which is in the Debian package bubblewrap.
describe.skipIf(findBwrap() === null).each([
  ["root", undefined],
  ["an ordinary user", nobodyUid],
] as const)("nested commands in a sandbox as %s", (_, uid) => {
  const isUnsupported = !isRoot && uid !== undefined;

  it.skipIf(isUnsupported)("are recorded under their run if there is no coordinator", async () => {
    const project = createProject(nestedCommands, uid, { isolation: "sandbox" });
    expect(await project.run(["run", "script"])).toMatchObject({ code: 0 });
    await expectBothRecorded(project);
  });

  it.skipIf(isUnsupported)("are recorded under their run of drover up", async () => {
    const project = createProject(nestedCommands, uid, { isolation: "sandbox" });
    await startDrover(["up", "--port", "0"], { ...project, ready: /Drover is up at/ });
    expect(await project.run(["run", "script"])).toMatchObject({ code: 0 });
    await expectBothRecorded(project);
  });
});

it.each([
  ["root", undefined],
  ["an ordinary user", nobodyUid],
] as const)("nested commands of runAgent in another program, as %s, are recorded under its run", async (_, uid) => {
  if (!isRoot && uid !== undefined) return;
  const project = createProject(nestedCommands, uid);
  const index = pathToFileURL(join(root, "dist", "index.mjs")).href;
  writeFileSync(
    join(project.cwd, "outer.mjs"),
    `import { runAgent } from ${JSON.stringify(index)};
     const agent = { name: "script", command: ${JSON.stringify(`sh ${join(project.cwd, "script.sh")}`)} };
     const { success } = await runAgent({ agent, prompt: "", stateDir: ${JSON.stringify(project.env["DROVER_STATE_DIR"])} });
     process.exitCode = success ? 0 : 1;`,
  );
  const commandPrefix = ["env", process.execPath, join(project.cwd, "outer.mjs")];
  const result = await drover([], {
    cwd: project.cwd,
    env: project.env,
    commandPrefix,
    ...(uid === undefined ? {} : { uid }),
  });
  expect(result).toMatchObject({ code: 0 });
  await expectBothRecorded(project);
});

it.skipIf(!isRoot)(
  "nested commands of a runner with another user and state are recorded by its coordinator",
  async () => {
    const project = createProject(nestedCommands, nobodyUid);
    const coordinator = await startCoordinator(createDirectory());
    const { json } = await coordinator.call<{ token: string }>("POST", "/tokens", { role: "runner", subject: "far" });
    await startDrover(["runner", "--name", "far", "-x", "./profiles/here.json", "-x", "echo"], {
      ...project,
      env: { ...project.env, DROVER_API_URL: coordinator.url, DROVER_API_KEY: json.token },
      ready: /^Offers /m,
    });
    const outer = await runToEnd(coordinator, { agent_name: "script" });
    expect(outer).toMatchObject({ status: "completed" });
    const executions = await coordinator.call<{ items: { start: { reported_by?: string } }[] }>(
      "GET",
      `/executions?run_id=${outer.run_id}`,
    );
    expect(executions.json.items.map(({ start }) => start.reported_by)).toEqual(["command", undefined]);
    const children = await coordinator.call<{ items: unknown[] }>("GET", `/runs?parent_run_id=${outer.run_id}`);
    expect(children.json.items).toMatchObject([{ agent_name: "echo", status: "completed" }]);
  },
);

it("a run that starts itself fails at the ninth level and says why", async () => {
  const project = createProject(`${droverCommand} run script\n`, undefined);
  const result = await project.run(["run", "script"]);
  expect(result.code).not.toBe(0);
  expect(result.stderr).toContain("Runs can be nested at most 8 levels deep, and this run would exceed that");
  const runs = await readRecord(project);
  expect(runs).toHaveLength(9);
  expect(runs.map(({ status }) => status)).toEqual(runs.map(() => "failed"));
});

it("a nested run that waits for its parent's slot says so and how to resolve it", async () => {
  const project = createProject(`${droverCommand} run waiting > said 2>&1\n`, undefined, { slots: 1 });
  writeFileSync(join(project.cwd, "agents", "waiting.yaml"), "name: waiting\ncommand: echo never\n");
  const coordinator = await startCoordinator(createDirectory());
  await startRunner(coordinator, project.cwd, "far", ["-x", "./profiles/here.json"]);
  const { json: run } = await coordinator.call<{ run_id: string }>("POST", "/runs", { agent_name: "script" });
  const output = (): string =>
    existsSync(join(project.cwd, "said")) ? readFileSync(join(project.cwd, "said"), "utf8") : "";
  await expect.poll(output, { timeout: 100_000 }).toMatch(/waiting: All slots are busy[^]*--slots/);
  expect((await coordinator.call("POST", `/runs/${run.run_id}/stop`)).status).toBe(200);
});
