import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { announcementFile, recordDirectory, tokenFile } from "../../src/model/state-layout.ts";
import { openStore } from "../../src/record/open.ts";
import { createAgent } from "../fixtures/dispatch/drive.ts";
import { drover, createDirectory } from "./drover.ts";
import { type DroverProcess, startDrover } from "./start-drover.ts";

const createProject = () => {
  const cwd = createDirectory();
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  return { cwd, state: join(cwd, "state"), run: (...args: string[]) => drover(args, { cwd, env }), env };
};

/** Starts `drover up` and waits for its runner. */
function up({ cwd, env }: ReturnType<typeof createProject>): Promise<DroverProcess> {
  return startDrover(["up", "--port", "0"], { cwd, env, ready: /Drover is up at/ });
}

describe("run without a coordinator", () => {
  it("runs in its own process, prints the output and exits with the command's code", async () => {
    const { run } = createProject();
    const message = "quotes \" and ' $(id) `x`\nnext line 🎉 --x";
    const accepted = await run("run", "echo", "--message", message);
    expect(accepted).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(accepted.stdout)).toEqual({ message });
    const refused = await run("run", "echo", "--message", "x", "--unknown", "y");
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("Error: Unknown parameter: --unknown");
    expect((await run("runs", "list", "--agent", "echo")).stdout.trim().split("\n")).toHaveLength(2);
    expect((await run("audit", "verify")).code).toBe(0);
  });

  it("names the directory it searched for an agent's script, and the profile that it suggests finds the script", async () => {
    const { run, cwd } = createProject();
    for (const directory of ["agents", "scripts", "profiles"]) mkdirSync(join(cwd, directory));
    writeFileSync(join(cwd, "agents", "greet.yaml"), "name: greet\ncommand: scripts/greet.sh\n");
    writeFileSync(join(cwd, "scripts", "greet.sh"), "#!/bin/sh\necho welcome\n", { mode: 0o755 });
    const missing = await run("run", "greet");
    expect(missing.code).toBe(127);
    expect(missing.stderr).toContain(
      "Command not found: scripts/greet.sh. The path is relative to the runner's directory",
    );
    const [, file, profile] = /(profiles\/\S+) with (\{.*?\})/.exec(missing.stderr)!;
    writeFileSync(join(cwd, file!), profile!);
    mkdirSync(join(cwd, "agents", "tools"));
    renameSync(join(cwd, "agents", "greet.yaml"), join(cwd, "agents", "tools", "greet.yaml"));
    expect(await run("run", "greet")).toMatchObject({ code: 0, stdout: "welcome\n" });
  });

  it("prints the command's bytes unchanged, and exits with the code of the signal that killed it", async () => {
    const { run, cwd } = createProject();
    mkdirSync(join(cwd, "profiles"));
    writeFileSync(join(cwd, "profiles", "here.json"), JSON.stringify({ type: "procedural", agents_dir: "./agents" }));
    mkdirSync(join(cwd, "agents"));
    writeFileSync(join(cwd, "agents", "raw.yaml"), "name: raw\ncommand: sh raw.sh\n");
    writeFileSync(join(cwd, "raw.sh"), "printf '\\000\\377\\303(\\303\\251\\n\\303'; kill -9 $$");
    const bytes = Buffer.from([0x00, 0xff, 0xc3, 0x28, 0xc3, 0xa9, 0x0a, 0xc3]);
    const result = await run("run", "raw");
    expect(result).toMatchObject({ code: 137, stdoutBytes: bytes });
    const id = /runs show (\S+)/.exec(result.stderr)![1]!;
    const shown = (await run("runs", "show", id)).stdoutBytes;
    expect(shown.subarray(shown.indexOf("\nstdout\n") + "\nstdout\n".length)).toEqual(
      Buffer.concat([bytes, Buffer.from("\n")]),
    );
  });

  it("prints a failed command's stderr once", async () => {
    const { run, cwd } = createProject();
    mkdirSync(join(cwd, "agents"));
    writeFileSync(
      join(cwd, "agents", "broken.yaml"),
      "name: broken\ncommand: sh -c 'echo no such table >&2; exit 3'\n",
    );
    const failed = await run("run", "broken");
    expect(failed.code).toBe(3);
    expect(failed.stderr).toMatch(
      /^no such table\ndrover: failed \(exit_nonzero\): The command exited with code 3\.\n {2}\S.* runs show \S+\n$/,
    );
  });

  it("exits with 1 if an autonomous agent fails, regardless of its program's exit code", async () => {
    const { run, cwd } = createProject();
    mkdirSync(join(cwd, "profiles"));
    const profile = { type: "failing", command: `sh ${join(cwd, "fail.sh")}`, agents_dir: "./agents" };
    writeFileSync(join(cwd, "profiles", "failing.json"), JSON.stringify(profile));
    mkdirSync(join(cwd, "agents"));
    writeFileSync(join(cwd, "agents", "thinker.yaml"), "name: thinker\ntype: autonomous\nexecutor: failing\n");
    writeFileSync(join(cwd, "fail.sh"), "read line; exit 7");
    expect(await run("run", "thinker", "--prompt", "x")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("exit_nonzero"),
    });
  });

  it("suggests the intended agent, and the expected type of a parameter", async () => {
    const { run, cwd } = createProject();
    const unknown = await run("run", "ecko", "--message", "x");
    expect(unknown.code).not.toBe(0);
    expect(unknown.stderr).toContain(
      `Did you mean echo? [DROVER-SUB-001]\n  ${cwd} has no profiles/. Run the command in`,
    );
    mkdirSync(join(cwd, "profiles"));
    expect((await run("run", "ecko")).stderr).toMatch(/\n {2}List the agents: .*drover agents list\n$/);
    const json = await run("run", "echo", "--params", "[1]");
    expect(json).toMatchObject({ code: 2 });
    expect(json.stderr).toContain("--params");
  });
});

describe("up", () => {
  it("serves runs, stops, tokens and backups, and shuts down on a signal", async () => {
    const project = createProject();
    const { run, cwd, state } = project;
    const process = await up(project);
    expect(statSync(tokenFile(recordDirectory(state), "token")).mode & 0o777).toBe(0o600);

    expect((await run("run", "echo", "--message", "hi")).stdout).toBe('{"message":"hi"}\n');
    const wholeRun = JSON.parse((await run("run", "echo", "--message", "hi", "--json")).stdout);
    expect(wholeRun).toMatchObject({ status: "completed", exit_code: 0, result_data: { message: "hi" } });
    expect((await run("agents", "list")).stdout).toContain("echo\tprocedural\trunner");
    expect((await run("runners", "list")).stdout).toContain("online");
    const events = (await run("runs", "events", wholeRun.run_id, "--json")).stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(events.at(-1).event.type).toBe("result");
    const retriedId = (await run("runs", "retry", wholeRun.run_id.slice(0, -4), "--quiet")).stdout.trim();
    await expect
      .poll(async () => JSON.parse((await run("runs", "show", retriedId, "--json")).stdout))
      .toMatchObject({ status: "completed", retry_of: wholeRun.run_id });

    const token = (await run("tokens", "create", "ada", "--role", "viewer", "--quiet")).stdout.trim();
    expect(token).toMatch(/^drv_/);
    const { url } = JSON.parse(readFileSync(announcementFile(recordDirectory(state)), "utf8"));
    const asAda = (...args: string[]) =>
      drover(args, { cwd, env: { ...project.env, DROVER_API_URL: url, DROVER_API_KEY: token } });
    expect((await asAda("runs", "list")).stdout).toBe("");
    expect((await asAda("run", "echo", "--message", "x")).stderr).toContain("DROVER-API-011");

    const file = join(cwd, "copy.backup");
    expect((await run("backup", file)).code).toBe(0);
    const restored = { DROVER_STATE_DIR: join(cwd, "restored") };
    expect((await drover(["restore", file], { cwd, env: restored })).stdout).toContain("intact");
    expect(
      (await drover(["runs", "list", "--agent", "echo"], { cwd, env: restored })).stdout.trim().split("\n"),
    ).toHaveLength(3);

    expect(await process.end("SIGTERM")).toBe(0);
    // The record shows that the runners left together with the coordinator.
    expect(await run("runners", "list")).toMatchObject({ code: 0, stdout: "" });
    expect((await run("tokens", "list")).stderr).toContain("No coordinator");
  });

  it("follows changes to agent files, and stops runs", async () => {
    const project = createProject();
    const { cwd, run } = project;
    mkdirSync(join(cwd, "profiles"));
    mkdirSync(join(cwd, "agents-here"));
    writeFileSync(
      join(cwd, "profiles", "mine.json"),
      JSON.stringify({ type: "procedural", agents_dir: "./agents-here" }),
    );
    await up(project);
    writeFileSync(join(cwd, "agents-here", "long.yaml"), "name: long\ncommand: sleep 60\n");
    await expect.poll(async () => (await run("agents", "accept")).stdout).toContain("accepted long");
    await expect.poll(async () => (await run("agents", "list")).stdout).toContain("long\t");
    const id = (await run("run", "long", "--detach", "--quiet")).stdout.trim();
    await expect.poll(async () => JSON.parse((await run("runs", "show", id, "--json")).stdout).status).toBe("running");
    expect((await run("runs", "stop", id.slice(0, -4))).code).toBe(0);
    await expect
      .poll(async () => JSON.parse((await run("runs", "show", id, "--json")).stdout).status)
      .toBe("cancelled");
  });
});

it("lists and shows agents from files, the record and profiles without a coordinator", async () => {
  const cwd = createDirectory();
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  mkdirSync(join(cwd, "agents"));
  writeFileSync(join(cwd, "agents", "one.yaml"), "name: one\ncommand: ls\ntags: [review, fast]\n");
  const run = (...args: string[]) => drover(args, { cwd, env });
  const names = async (...args: string[]) =>
    (await run("agents", "list", "--json", ...args)).stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { name: string; source: string })
      .map(({ name, source }) => `${name} ${source}`);
  const agentNames = await names();
  expect(agentNames).toEqual(expect.arrayContaining(["echo runner", "one file"]));
  expect(existsSync(join(cwd, "state"))).toBe(false);
  const store = await openStore({
    directory: recordDirectory(env.DROVER_STATE_DIR),
    now: () => new Date(),
    createIfMissing: true,
  });
  const agent = createAgent("put", { tags: ["slow", "review"] });
  await store.apply([{ op: "put_agent", agent, by: "me" }]);
  await store.close();
  expect(await names()).toEqual([...agentNames, "put api"].sort());
  expect(await names("--tag", "review")).toEqual(["one file", "put api"]);
  expect(JSON.parse((await run("agents", "show", "put")).stdout)).toMatchObject({ name: "put", source: "api" });
  expect(await run("agents", "show", "nosuch")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Unknown agent: nosuch. [DROVER-API-014]"),
  });
});
