import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { findBwrap } from "../../src/process/sandbox.ts";
import { drover, folder, isRoot, nobody, root } from "./drover.ts";
import { me, nestedOf, type Place, place, record } from "./nested-place.ts";
import { offer, runToEnd, serve } from "./serving.ts";
import { startDrover } from "./start-drover.ts";

const both = `${me} exec "echo one" || exit 1\n${me} run echo --message two || exit 2\n`;

async function expectBoth(here: Place): Promise<void> {
  const runs = await record(here);
  const outer = runs.find(({ agent_name }) => agent_name === "script")!;
  expect(outer).toMatchObject({ status: "completed" });
  expect(nestedOf(outer)).toEqual([["echo one", 0]]);
  const child = runs.find(({ agent_name }) => agent_name === "echo");
  expect(child).toMatchObject({ status: "completed", parent_run_id: outer.run_id });
}

// bwrap is the Debian package bubblewrap: without it these are skipped
describe.skipIf(findBwrap() === null).each([
  ["root", undefined],
  ["an ordinary user", nobody],
] as const)("nested commands in a sandbox as %s", (_, uid) => {
  const cannot = !isRoot && uid !== undefined;

  it.skipIf(cannot)("of a run without a coordinator are on the record under it", async () => {
    const here = place(both, uid, { isolation: "sandbox" });
    expect(await here.run(["run", "script"])).toMatchObject({ code: 0 });
    await expectBoth(here);
  });

  it.skipIf(cannot)("of a run of drover up are on the record under it", async () => {
    const here = place(both, uid, { isolation: "sandbox" });
    await startDrover(["up", "--port", "0"], { ...here, ready: /Drover is up at/ });
    expect(await here.run(["run", "script"])).toMatchObject({ code: 0 });
    await expectBoth(here);
  });
});

it.each([
  ["root", undefined],
  ["an ordinary user", nobody],
] as const)(
  "nested commands of runAgent in another program, as %s, are on the record under its run",
  async (_, uid) => {
    if (!isRoot && uid !== undefined) return;
    const here = place(both, uid);
    const index = pathToFileURL(join(root, "dist", "index.mjs")).href;
    writeFileSync(
      join(here.cwd, "outer.mjs"),
      `import { runAgent } from ${JSON.stringify(index)};
     const agent = { name: "script", command: ${JSON.stringify(`sh ${join(here.cwd, "script.sh")}`)} };
     const { success } = await runAgent({ agent, prompt: "", stateDir: ${JSON.stringify(here.env["DROVER_STATE_DIR"])} });
     process.exitCode = success ? 0 : 1;`,
    );
    const through = ["env", process.execPath, join(here.cwd, "outer.mjs")];
    const ran = await drover([], {
      cwd: here.cwd,
      env: here.env,
      through,
      ...(uid === undefined ? {} : { uid }),
    });
    expect(ran).toMatchObject({ code: 0 });
    await expectBoth(here);
  },
);

it.skipIf(!isRoot)(
  "nested commands of a runner with another user and state are on the record of its coordinator",
  async () => {
    const here = place(both, nobody);
    const serving = await serve(folder());
    const { json } = await serving.call<{ token: string }>("POST", "/tokens", { role: "runner", subject: "far" });
    await startDrover(["runner", "--name", "far", "-x", "./profiles/here.json", "-x", "echo"], {
      ...here,
      env: { ...here.env, DROVER_API_URL: serving.url, DROVER_API_KEY: json.token },
      ready: /^Offers /m,
    });
    const outer = await runToEnd(serving, { agent_name: "script" });
    expect(outer).toMatchObject({ status: "completed" });
    const executions = await serving.call<{ items: { start: { reported_by?: string } }[] }>(
      "GET",
      `/executions?run_id=${outer.run_id}`,
    );
    expect(executions.json.items.map(({ start }) => start.reported_by)).toEqual(["command", undefined]);
    const children = await serving.call<{ items: unknown[] }>("GET", `/runs?parent_run_id=${outer.run_id}`);
    expect(children.json.items).toMatchObject([{ agent_name: "echo", status: "completed" }]);
  },
);

it("a run that starts itself ends at the ninth, with a message that says why", async () => {
  const here = place(`${me} run script\n`, undefined);
  const ran = await here.run(["run", "script"]);
  expect(ran.code).not.toBe(0);
  expect(ran.stderr).toContain("Runs can be nested at most 8 levels deep, and this run would exceed that");
  const runs = await record(here);
  expect(runs).toHaveLength(9);
  expect(runs.map(({ status }) => status)).toEqual(runs.map(() => "failed"));
});

it("a nested run that waits for the slot of its parent says so, and what helps", async () => {
  const here = place(`${me} run waiting > said 2>&1\n`, undefined, { slots: 1 });
  writeFileSync(join(here.cwd, "agents", "waiting.yaml"), "name: waiting\ncommand: echo never\n");
  const serving = await serve(folder());
  await offer(serving, here.cwd, "far", ["-x", "./profiles/here.json"]);
  const { json: run } = await serving.call<{ run_id: string }>("POST", "/runs", { agent_name: "script" });
  const said = (): string => (existsSync(join(here.cwd, "said")) ? readFileSync(join(here.cwd, "said"), "utf8") : "");
  await expect.poll(said, { timeout: 100_000 }).toMatch(/waiting: All slots are busy[^]*--slots/);
  expect((await serving.call("POST", `/runs/${run.run_id}/stop`)).status).toBe(200);
});
