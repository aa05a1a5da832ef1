import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { announcementFile, databaseFile, recordDirectory } from "../../src/model/state-layout.ts";
import { drover, createDirectory, isRoot, nobodyUid } from "./drover.ts";
import { createProject, countAuditRows } from "./project.ts";
import { startCommand } from "./coordinator-process.ts";

describe("the record survives what a command does to its project", () => {
  it.each<[string, string[]]>([
    ["git clean", ["--", "git", "clean", "-fdx"]],
    ["git clean of nested repositories", ["git init -q nested && git clean -ffdx"]],
    ["everything in it is removed", ["rm -rf ./* ./.[!.]*"]],
    ["all of it is removed", ['rm -rf "$PWD"']],
    ["it is moved away", ['mv "$PWD" "$PWD-moved"']],
    ["it is moved away, and another is put there", ['mv "$PWD" "$PWD-moved" && git init -q "$PWD"']],
    ["a git stash of everything", ["touch x; git stash -a || true"]],
    ["find -delete", ["find . -mindepth 1 -delete"]],
  ])("%s", async (_what, args) => {
    const { cwd, run } = createProject();
    await run("exec", "echo first");
    expect(readdirSync(cwd)).toEqual([".git"]);
    expect((await run("exec", ...args)).stderr).not.toContain("drover:");
    mkdirSync(join(cwd, ".git"), { recursive: true });
    expect(countAuditRows(await run("audit", "verify"))).toBe(4);
  });
});

it("each clone and worktree has its own state, and a link shares the state of its target", async () => {
  const { top, cwd, runIn, run, home } = createProject();
  const git = (...args: string[]) =>
    execFileSync("git", ["-C", cwd, "-c", "user.name=a", "-c", "user.email=a@b", ...args], { stdio: "ignore" });
  git("commit", "-q", "--allow-empty", "-m", "first");
  git("worktree", "add", "-q", join(top, "tree"));
  execFileSync("git", ["clone", "-q", cwd, join(top, "clone")], { stdio: "ignore" });
  symlinkSync(cwd, join(top, "link"));
  for (const name of ["app", "clone", "tree", "link"])
    expect((await runIn(join(top, name), "exec", `echo ${name}`)).code).toBe(0);
  expect(
    readdirSync(join(home, ".local/state/drover/projects"))
      .map((name) => name.slice(0, -13))
      .sort(),
  ).toEqual(["app", "clone", "tree"]);
  expect(countAuditRows(await run("audit", "verify"))).toBe(4);
});

describe("a .drover/ that came with a repository", () => {
  async function startOtherProgram() {
    const requests: string[] = [];
    const server = createServer((request, response) => {
      requests.push(request.url ?? "");
      response.end(JSON.stringify({ status: "ok", protocol: 1 }));
    });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    // A TCP server's address is never a string.
    return { requests, url: `http://127.0.0.1:${(server.address() as { port: number }).port}` };
  }

  it.each([
    [
      "",
      [["runs", "list"], ["run", "echo"], ["runner"], ["tokens", "list"], ["agents", "list"], ["ui"], ["backup", "x"]],
    ],
    ["record", [["runs", "list"], ["runner"], ["exec", "true"]]],
  ] as [string, string[][]][])("with an address and a token in ./%s attracts no command", async (half, commands) => {
    const { cwd, run } = createProject();
    const { requests, url } = await startOtherProgram();
    const project = join(cwd, ".drover", half);
    mkdirSync(project, { recursive: true });
    writeFileSync(announcementFile(project), JSON.stringify({ url, pid: process.pid, token_file: "token" }));
    writeFileSync(join(project, "token"), `drv_${"a".repeat(32)}\n`, { mode: 0o600 });
    for (const args of commands) {
      const { stderr } = await run(...args);
      expect(stderr, args.join(" ")).toContain(`${join(cwd, ".drover")} is not used`);
      expect(stderr).toContain(`drover state move --from ${join(cwd, ".drover")}`);
    }
    expect(requests).toEqual([]);
    expect(readdirSync(project).sort()).toEqual(["coordinator.json", "token"]);
  });

  it("with a database is not modified, and is only moved if it is named", async () => {
    const { cwd, run, home } = createProject();
    await drover(["exec", "true"], { cwd, env: { HOME: createDirectory(), DROVER_STATE_DIR: join(cwd, ".drover") } });
    const databaseBefore = readFileSync(databaseFile(recordDirectory(join(cwd, ".drover"))));
    await run("exec", "echo mine");
    expect(readFileSync(databaseFile(recordDirectory(join(cwd, ".drover")))).equals(databaseBefore)).toBe(true);
    expect(await run("state", "move")).toMatchObject({ code: 2, stderr: expect.stringContaining("--from") });
    const trusting = await drover(["runs", "list"], { cwd, env: { HOME: home, DROVER_TRUST: cwd } });
    expect(trusting).toMatchObject({
      stdout: expect.stringContaining("echo mine"),
      stderr: expect.stringContaining("is not used"),
    });
  });
});

describe("a state of an earlier version", () => {
  /** Creates the layout of earlier versions. */
  async function createEarlierState(where: (cwd: string) => string) {
    const project = createProject();
    const state = where(project.cwd);
    await drover(["exec", "echo before"], {
      cwd: project.cwd,
      env: { HOME: createDirectory(), DROVER_STATE_DIR: state },
    });
    for (const name of readdirSync(recordDirectory(state)))
      renameSync(join(recordDirectory(state), name), join(state, name));
    rmSync(recordDirectory(state), { recursive: true });
    return { ...project, state };
  }

  it("named by DROVER_STATE_DIR is never modified, and every command says how to move it", async () => {
    const { cwd, home, state } = await createEarlierState((project) => join(project, "state"));
    const run = (...args: string[]) => drover(args, { cwd, env: { HOME: home, DROVER_STATE_DIR: state } });
    for (const args of [["exec", "true"], ["runs", "list"], ["up"], ["audit", "verify"], ["backup", "x"], ["runner"]])
      expect(await run(...args)).toMatchObject({
        code: 125,
        stderr: expect.stringMatching(`DROVER-STA-013[^]*drover state move --from ${state}`),
      });
    expect(existsSync(recordDirectory(state))).toBe(false);
    expect((await run("state")).stdout).toContain(`drover state move --from ${state}`);
    const moved = await run("state", "move");
    expect(moved).toMatchObject({ code: 0, stdout: expect.stringContaining("The audit chain is intact, 2 rows") });
    expect((await run("exec", "echo after")).stderr).toBe("");
    const { stdout } = await run("runs", "list");
    expect(stdout).toMatch(/echo after[^]*echo before/);
    expect(countAuditRows(await run("audit", "verify"))).toBe(4);
  });

  it("in .drover/ is moved to the user's state directory when it is named", async () => {
    const { cwd, run, state } = await createEarlierState((project) => join(project, ".drover"));
    expect((await run("state", "move", "--from", ".drover")).code).toBe(0);
    expect(existsSync(state)).toBe(false);
    expect((await run("runs", "list")).stdout).toContain("echo before");
    expect((await run("exec", "true")).stderr).toBe("");
    expect(countAuditRows(await run("audit", "verify"))).toBe(4);
    expect(readdirSync(cwd)).toEqual([".git"]);
  });

  it("is not moved while it is in use", async () => {
    const { cwd, home } = createProject();
    const state = join(cwd, "state");
    const env = { HOME: home, DROVER_STATE_DIR: state };
    await startCommand(["coordinator", "--port", "0"], { cwd, env, ready: /^Serving/m });
    const newStateEnv = { HOME: home, DROVER_STATE_DIR: join(cwd, "other") };
    const move = () => drover(["state", "move", "--from", state], { cwd, env: newStateEnv });
    expect(await move()).toMatchObject({
      code: 125,
      stderr: expect.stringMatching(/A coordinator is using .*DROVER-STA-014/),
    });
    expect((await drover(["runs", "list"], { cwd, env })).code).toBe(0);
  });
});

it("commands find the coordinator of their project from any of its directories", async () => {
  const { cwd, home, runIn } = createProject();
  mkdirSync(join(cwd, "deep", "er"), { recursive: true });
  const output = await startCommand(["up", "--port", "0", "--examples"], {
    cwd,
    env: { HOME: home },
    ready: /Drover is up at/,
  });
  const url = /up at (\S+)/.exec(output)?.[1] ?? "";
  const runOutput = await runIn(join(cwd, "deep", "er"), "run", "echo", "--message", "found", "--json");
  expect(runOutput, runOutput.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining("found") });
  expect((await runIn(cwd, "up", "--port", "0")).stderr).toContain(url);
});

describe("a user", () => {
  it.runIf(isRoot)("without a writable HOME gets a message that names the variable to set", async () => {
    const cwd = createDirectory(nobodyUid);
    const { code, stderr } = await drover(["exec", "true"], { cwd, uid: nobodyUid, env: { HOME: "/" } });
    expect([code, stderr]).toEqual([125, expect.stringMatching(/DROVER-STA-00[16][^]*DROVER_STATE_DIR/)]);
  });

  it.runIf(isRoot)("without a writable HOME can keep the record in DROVER_STATE_DIR", async () => {
    const cwd = createDirectory(nobodyUid);
    const env = { HOME: "/", DROVER_STATE_DIR: join(cwd, "state") };
    expect(await drover(["exec", "true"], { cwd, uid: nobodyUid, env })).toMatchObject({ code: 0, stderr: "" });
    expect(countAuditRows(await drover(["audit", "verify"], { cwd, uid: nobodyUid, env }))).toBe(2);
  });
});
