import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  auditKeyFile,
  announcementFile,
  databaseFile,
  recordDirectory,
  tokenFile,
} from "../../src/model/state-layout.ts";
import { projectStateDirectory } from "../../src/define/user-state.ts";
import { drover, exists, createDirectory, isRoot, nobodyUid } from "./drover.ts";
import { createProject } from "./create-project.ts";

describe("an announcement left behind by a coordinator", () => {
  /** Another program that now listens on a port, and the Authorization headers it received. */
  async function startOtherProgram() {
    const authorizations: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      authorizations.push(request.headers.authorization);
      response.end("hello");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    // A TCP server's address is never a string.
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return { url, authorizations, stop: () => new Promise((resolve) => server.close(resolve)) };
  }

  it.each([
    ["a process that has ended", () => spawnSync("true").pid, 0],
    ["a process of another program", () => process.pid, 1],
  ])("sends no token to the announced address if the process is %s", async (_what, pid, calls) => {
    const { state, run } = createProject();
    await run("exec", "echo kept");
    const otherProgram = await startOtherProgram();
    writeFileSync(announcementFile(recordDirectory(state)), JSON.stringify({ url: otherProgram.url, pid: pid() }));
    writeFileSync(tokenFile(recordDirectory(state), "token"), "drv_secret\n");
    const { code, stdout } = await run("runs", "list");
    await otherProgram.stop();
    expect(code).toBe(0);
    expect(stdout).toContain("echo kept");
    expect(otherProgram.authorizations).toEqual(Array.from({ length: calls }, () => undefined));
  });

  it.each([
    "",
    "{",
    "null",
    "{}",
    '{"url": 1, "pid": "x"}',
    '{"url": "nonsense", "pid": 1}',
    '{"url":"http://127.0.0.1:1","pid":0}',
  ])("is ignored if it is broken: %s", async (text) => {
    const { state, run } = createProject();
    await run("exec", "echo kept");
    writeFileSync(announcementFile(recordDirectory(state)), text);
    const { code, stdout, stderr } = await run("runs", "list");
    expect(stderr).toBe("");
    expect(code).toBe(0);
    expect(stdout).toContain("echo kept");
  });
});

function createAliasBomb(): string {
  const levels = Array.from({ length: 12 }, (_, n) => `a${n + 1}: &a${n + 1} [${`*a${n},`.repeat(9)}]\n`);
  return `a0: &a0 [x]\n${levels.join("")}`;
}

describe("bad configuration", () => {
  const cases: [what: string, text: string, stable: string, says: string[]][] = [
    [
      "an unknown key",
      "execution:\n  default_timout_seconds: 5\n",
      "DROVER-CFG-003",
      ["drover.yaml:2", "default_timeout_seconds"],
    ],
    ["an unknown block", "exekution: {}\n", "DROVER-CFG-003", ["drover.yaml:1", "execution"]],
    [
      "a wrong type",
      "execution:\n  max_output_kb: lots\n",
      "DROVER-CFG-004",
      ["drover.yaml:2", "execution.max_output_kb"],
    ],
    ["a wrong choice", "isolation: total\n", "DROVER-CFG-004", ["drover.yaml:1", "isolation"]],
    ["not YAML", "execution: [\n", "DROVER-CFG-002", ["drover.yaml:"]],
    ["a list instead of a map", "- a\n- b\n", "DROVER-CFG-004", ["drover.yaml:1"]],
    ["aliases that multiply", createAliasBomb(), "DROVER-CFG-005", ["drover.yaml:1"]],
    ["too deep", "[".repeat(20_000), "DROVER-CFG-005", ["drover.yaml:1"]],
    ["more output than is kept", "execution:\n  max_output_kb: 65537\n", "DROVER-CFG-004", ["drover.yaml:2", "65536"]],
  ];

  it.each(cases)("%s is refused", async (_what, text, errorCode, expected) => {
    const { cwd, state, run } = createProject();
    writeFileSync(join(cwd, "drover.yaml"), text);
    const { code, stderr } = await run("exec", "touch made");
    expect(code).toBe(125);
    for (const word of [errorCode, ...expected]) expect(stderr).toContain(word);
    expect(exists(join(cwd, "made"))).toBe(false);
    expect(exists(state)).toBe(false);
  });

  const irregularFiles: [what: string, make: (path: string) => unknown][] = [
    ["a directory", (path) => mkdirSync(path)],
    ["a pipe", (path) => spawnSync("mkfifo", [path])],
    ["a link to nothing", (path) => symlinkSync("nowhere", path)],
    ["a link to itself", (path) => symlinkSync("drover.yaml", path)],
  ];

  it.each(irregularFiles)("%s in place of drover.yaml is refused", async (_what, make) => {
    const { cwd, run } = createProject();
    make(join(cwd, "drover.yaml"));
    const { code, stderr } = await run("exec", "touch made");
    expect(code).toBe(125);
    expect(stderr).toContain("DROVER-CFG-001");
    expect(stderr).toContain(join(cwd, "drover.yaml"));
    expect(exists(join(cwd, "made"))).toBe(false);
  });

  it.runIf(isRoot)("a drover.yaml of another user is ignored, even by root", async () => {
    const { cwd, run } = createProject();
    writeFileSync(join(cwd, "drover.yaml"), "not: known\n");
    chownSync(join(cwd, "drover.yaml"), nobodyUid, nobodyUid);
    expect(await run("exec", "echo made")).toMatchObject({ code: 0, stdout: "made\n" });
  });

  it.runIf(isRoot)("a drover.yaml of root applies to a user who can read it", async () => {
    const cwd = createDirectory(nobodyUid);
    mkdirSync(join(cwd, ".git"));
    writeFileSync(join(cwd, "drover.yaml"), "", { mode: 0o600 });
    const places = async () => {
      const { stdout } = await drover(["doctor", "--json"], {
        cwd,
        uid: nobodyUid,
        env: { XDG_STATE_HOME: "/elsewhere" },
      });
      // doctor prints an object with these keys
      const { state_directory, config_file } = JSON.parse(stdout) as Record<string, unknown>;
      return { state_directory, config_file };
    };
    const state_directory = projectStateDirectory("/elsewhere/drover", cwd);
    expect(await places()).toEqual({ state_directory, config_file: null });
    chmodSync(join(cwd, "drover.yaml"), 0o644);
    expect(await places()).toEqual({ state_directory, config_file: join(cwd, "drover.yaml") });
  });

  it("an unreadable drover.yaml is refused", async () => {
    // Root can read everything, so an ordinary user runs the command.
    const { cwd, run } = createProject(isRoot ? nobodyUid : undefined);
    writeFileSync(join(cwd, "drover.yaml"), "execution: {}\n");
    chmodSync(join(cwd, "drover.yaml"), 0o000);
    if (isRoot) chownSync(join(cwd, "drover.yaml"), nobodyUid, nobodyUid);
    const { code, stderr } = await run("exec", "touch made");
    expect(code).toBe(125);
    expect(stderr).toContain("DROVER-CFG-001");
    expect(exists(join(cwd, "made"))).toBe(false);
  });
});

describe("a command is refused if the state directory", () => {
  it("is read-only", async () => {
    const { cwd, state, run } = createProject(isRoot ? nobodyUid : undefined);
    mkdirSync(state);
    chmodSync(state, 0o555);
    const { code, stderr } = await run("exec", "touch made");
    expect(code).toBe(125);
    expect(stderr).toContain("DROVER-STA-001");
    expect(stderr).toContain(state);
    expect(exists(join(cwd, "made"))).toBe(false);
    expect(readdirSync(state)).toEqual([]);
  });

  it("is a file", async () => {
    const { cwd, state, run } = createProject();
    writeFileSync(state, "");
    const { code, stderr } = await run("exec", "touch made");
    expect(code).toBe(125);
    expect(stderr).toMatch(/DROVER-STA-00[16]/);
    expect(exists(join(cwd, "made"))).toBe(false);
  });

  it("has a damaged database", async () => {
    const { cwd, state, run } = createProject();
    await run("exec", "true");
    writeFileSync(
      databaseFile(recordDirectory(state)),
      "not a database at all, but long enough to be looked at".repeat(100),
    );
    rmSync(`${databaseFile(recordDirectory(state))}-wal`, { force: true });
    const { code, stderr } = await run("exec", "touch made");
    expect(code).toBe(125);
    expect(stderr).toContain("DROVER-STA-004");
    expect(exists(join(cwd, "made"))).toBe(false);
  });

  it("has lost its audit key", async () => {
    const { cwd, state, run } = createProject();
    await run("exec", "true");
    chmodSync(auditKeyFile(recordDirectory(state)), 0o644);
    const { code, stderr } = await run("exec", "touch made");
    expect(code).toBe(125);
    expect(stderr).toContain("DROVER-AUD-001");
    expect(exists(join(cwd, "made"))).toBe(false);
  });
});
