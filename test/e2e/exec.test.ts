import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { logsDirectory, recordDirectory } from "../../src/model/state-layout.ts";
import { drover, createDirectory, isRoot, nobodyUid, withoutNamespaces, type RunOptions } from "./drover.ts";

const noNamespaces = withoutNamespaces();
const hosts: [string, RunOptions, string[]][] = [
  ["as this user", {}, ["pid", "group"]],
  ...(isRoot
    ? [["as an ordinary user", { uid: nobodyUid }, ["pid", "group"]] satisfies [string, RunOptions, string[]]]
    : []),
  ...(noNamespaces
    ? [
        ["where namespaces are not allowed", { commandPrefix: noNamespaces }, ["group"]] satisfies [
          string,
          RunOptions,
          string[],
        ],
      ]
    : []),
];

describe.each(hosts)("exec %s", (_name, how, levels) => {
  const createProject = () => {
    const state = createDirectory(how.uid);
    const run = (...args: string[]) =>
      drover(args, { ...how, cwd: state, env: { DROVER_STATE_DIR: join(state, "state") } });
    return { state, run };
  };

  it("prints the command's output and exits with its code", async () => {
    const { run } = createProject();
    expect(await run("exec", "echo hello")).toMatchObject({ code: 0, stdout: "hello\n", stderr: "" });
    expect(await run("exec", "exit 42")).toMatchObject({ code: 42, stdout: "" });
  });

  it("stops a command that exceeds its disk limit with 124, without counting Drover's own record", async () => {
    const { run } = createProject();
    const limits = ["--limit", "disk=2m", "--limit", "files=50"];
    const filledDisk = await run(
      "exec",
      ...limits,
      "--",
      "sh",
      "-c",
      "while :; do head -c 100000 /dev/zero >> f; done",
    );
    expect(filledDisk).toMatchObject({
      code: 124,
      stderr: expect.stringContaining("limit on disk space (2097152 bytes)"),
    });
    const many = await run("exec", ...limits, "--", "sh", "-c", "while :; do i=$((i+1)); : > $i; done");
    expect(many).toMatchObject({ code: 124, stderr: expect.stringContaining("limit on files (50)") });
    const print = ["sh", "-c", "head -c 3000000 /dev/zero"];
    expect(await run("exec", ...limits, "--capture", "file", "--", ...print)).toMatchObject({ code: 0 });
  });

  it("stops a command at its timeout with 124", async () => {
    const { run } = createProject();
    const startedAt = Date.now();
    const { code, stderr } = await run("exec", "sleep 60", "--timeout", "2");
    expect(code).toBe(124);
    expect(stderr).toContain("DROVER-EXE-002");
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(2000);
  });

  it("reports an unknown command with 127", async () => {
    const { run } = createProject();
    const { code, stderr } = await run("exec", "nosuchcmd");
    expect(code).toBe(127);
    expect(stderr).toContain("DROVER-EXE-001");
    expect(stderr).toContain("nosuchcmd");
  });

  it("names the signal that killed a command, and exits with 128 plus its number", async () => {
    const { run } = createProject();
    const { code, stderr } = await run("exec", "--", "sh", "-c", "kill -9 $$");
    expect(code).toBe(137);
    expect(stderr).toContain("SIGKILL");
  });

  it("records every command", async () => {
    const { run } = createProject();
    await run("exec", "echo hello");
    await run("exec", "exit 42");
    await run("exec", "nosuchcmd");
    await run("exec", "--", "sh", "-c", "kill -9 $$");
    const listed = await run("runs", "list");
    expect(listed.code).toBe(0);
    const rows = listed.stdout
      .trim()
      .split("\n")
      .map((line) => line.split("\t"));
    expect(rows.map(([, status, exit]) => [status, exit])).toEqual([
      ["failed: signalled", "-"],
      ["failed: command_not_found", "-"],
      ["failed: exit_nonzero", "42"],
      ["completed", "0"],
    ]);
    const shown = await run("runs", "show", rows[3]![0]!);
    expect(shown.stdout).toContain("hello");
    const killed = JSON.parse((await run("runs", "show", rows[0]![0]!, "--json")).stdout);
    expect(killed).toMatchObject({
      status: "failed",
      reason: "signalled",
      executions: [{ end: { signal: "SIGKILL", exit_code: null } }],
    });
    expect(levels).toContain(killed.isolation);
    expect((await run("audit", "verify")).code).toBe(0);
  });
});

describe("exec", () => {
  const createProject = () => {
    const cwd = createDirectory();
    const run = (args: string[], options: RunOptions = {}) =>
      drover(args, { cwd, ...options, env: { DROVER_STATE_DIR: join(cwd, "state"), ...options.env } });
    return { cwd, run };
  };

  it("prints the complete result as JSON with the documented names", async () => {
    const { cwd, run } = createProject();
    const ids = [
      "--run-id",
      "r",
      "--session-id",
      "s",
      "--task-id",
      "t",
      "--step-id",
      "st",
      "--tool-call-id",
      "tc",
      "--worktree-id",
      "w",
      "--repo-sha",
      "abc",
    ];
    const { code, stdout } = await run(["exec", "echo out; echo err >&2; exit 3", "--json", ...ids]);
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      command: "echo out; echo err >&2; exit 3",
      workingDirectory: cwd,
      exitCode: 3,
      signal: null,
      success: false,
      timedOut: false,
      startTime: expect.stringMatching(/Z$/),
      endTime: expect.stringMatching(/Z$/),
      durationMs: expect.any(Number),
      stdout: "out\n",
      stderr: "err\n",
      truncated: false,
      isolation: expect.stringMatching(/^(pid|group)$/),
      leftovers: 0,
      error: { code: "DROVER-EXE-003", message: expect.stringContaining("3") },
      resources: { userMs: expect.any(Number), systemMs: expect.any(Number), maxRssKb: expect.any(Number) },
      correlationIds: {
        runId: "r",
        sessionId: "s",
        taskId: "t",
        stepId: "st",
        toolCallId: "tc",
        worktreeId: "w",
        repoSha: "abc",
      },
    });
  });

  it("passes stdin on, including bytes that are not UTF-8", async () => {
    const { run } = createProject();
    expect((await run(["exec", "cat"], { input: "from stdin" })).stdout).toBe("from stdin");
    const { stdout } = await run(["exec", "--json", "--", "printf", "\\377\\000a"]);
    expect(Buffer.from(JSON.parse(stdout).stdoutBase64, "base64")).toEqual(Buffer.from([0xff, 0, 0x61]));
  });

  it("records a nested exec as an execution of its run, with the same ids and commit in result and export", async () => {
    const { run } = createProject();
    const nested = `'${process.execPath}' '${join(process.cwd(), "bin/drover.js")}' exec "echo inner" --json`;
    const ids = ["--task-id", "T1", "--run-id", "R1", "--repo-sha", "abc"];
    const outer = JSON.parse((await run(["exec", nested, "--json", ...ids])).stdout);
    const inner = JSON.parse(outer.stdout);
    expect(inner).toMatchObject({
      stdout: "inner\n",
      correlationIds: { taskId: "T1", runId: outer.id, repoSha: "abc" },
    });
    expect(Date.parse(outer.endTime) - Date.parse(outer.startTime)).toBe(outer.durationMs);
    expect((await run(["runs", "list"])).stdout.trim().split("\n")).toHaveLength(1);
    const audited = (await run(["audit", "export"])).stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    // The result and the export both name the run that the command is part of.
    expect(outer.correlationIds.runId).toBe("R1");
    expect(audited.map(({ executionId, runId, taskId, repoSha }) => [executionId, runId, taskId, repoSha])).toEqual([
      [outer.id, "R1", "T1", "abc"],
      [inner.id, outer.id, "T1", "abc"],
    ]);
    for (const { startTime, endTime, durationMs } of audited)
      expect(Date.parse(endTime) - Date.parse(startTime)).toBe(durationMs);
  });

  it("fills the commit in from git", async () => {
    const { cwd, run } = createProject();
    const git = (...args: string[]) =>
      spawnSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.invalid", ...args], { cwd, encoding: "utf8" });
    git("init", "-q");
    git("commit", "-q", "--allow-empty", "-m", "first");
    const sha = git("rev-parse", "HEAD").stdout.trim();
    expect(sha).toMatch(/^[0-9a-f]{40}$/);
    expect(JSON.parse((await run(["exec", "true", "--json"])).stdout).correlationIds.repoSha).toBe(sha);
    git("pack-refs", "--all");
    expect(JSON.parse((await run(["exec", "true", "--json"])).stdout).correlationIds.repoSha).toBe(sha);
  });

  it("withholds secrets and loader hooks from the command, reports that, and records names and limits", async () => {
    const { run } = createProject();
    const env = { GITHUB_TOKEN: "ghp_0123456789abcdefghij0123456789abcdef", LD_PRELOAD: "", PLAIN: "kept" };
    const options = ["--env", "ONE=1", "--env", "MY_KEY=hidden-value", "--limit", "cpu=60", "--limit", "files=1000"];
    const { stdout, stderr } = await run(["exec", "env", ...options], { env });
    expect(stdout).toContain("PLAIN=kept");
    expect(stdout).not.toContain("GITHUB_TOKEN");
    expect(stderr).toContain("GITHUB_TOKEN");
    const exported = (await run(["audit", "export"])).stdout;
    expect(JSON.parse(exported)).toMatchObject({
      limits: { cpu_seconds: 60, files: 1000 },
      environment: { mode: "inherit", given: ["MY_KEY", "ONE"], withheld: ["GITHUB_TOKEN", "LD_PRELOAD"] },
    });
    expect(exported).not.toContain("hidden-value");
  });

  it("reads drover.yaml of the working directory", async () => {
    const { cwd, run } = createProject();
    const configure = (seconds: number): void =>
      writeFileSync(
        join(cwd, "drover.yaml"),
        `execution:\n  default_timeout_seconds: ${seconds}\n  environment:\n    allow: [MY_TOKEN]\n`,
      );
    configure(0.3);
    expect((await run(["exec", "sleep 60"])).code).toBe(124);
    configure(60);
    expect((await run(["exec", "echo $MY_TOKEN"], { env: { MY_TOKEN: "given-to-the-command" } })).stdout).toBe(
      "given-to-the-command\n",
    );
  });

  it("stops the command when its reader goes away", async () => {
    const { cwd } = createProject();
    const line = `'${process.execPath}' '${join(process.cwd(), "bin/drover.js")}' exec yes | head -n 1`;
    const { stdout, status } = spawnSync("sh", ["-c", line], {
      cwd,
      encoding: "utf8",
      env: { ...process.env, DROVER_STATE_DIR: join(cwd, "state") },
      timeout: 120_000,
    });
    expect(stdout).toBe("y\n");
    expect(status).toBe(0);
  });

  it("stops the command and exits with 130 when it is interrupted", async () => {
    const { run } = createProject();
    let pid = 0;
    const interruptedRun = run(["exec", "echo ready; sleep 60"], { onSpawn: (spawned) => (pid = spawned) });
    // The record shows that the command has started.
    await expect.poll(async () => (await run(["runs", "list", "--status", "running"])).stdout).toContain("sleep 60");
    process.kill(pid, "SIGINT");
    expect(await interruptedRun).toMatchObject({ code: 130 });
    expect((await run(["runs", "list", "--status", "cancelled"])).stdout).toContain("sleep 60");
  });

  it("keeps the complete output in a file on request, and head and tail otherwise", async () => {
    const { cwd, run } = createProject();
    const result = JSON.parse(
      (await run(["exec", "seq 1 200000", "--json", "--spill", "--max-output-kb", "4"])).stdout,
    );
    expect(result.truncated).toBe(true);
    expect(result.stdout).toMatch(/^1\n2\n[^]*bytes not kept[^]*\n200000\n$/);
    const spilled = spawnSync(
      "wc",
      ["-l", join(logsDirectory(recordDirectory(join(cwd, "state"))), `${result.id}.stdout`)],
      {
        encoding: "utf8",
      },
    ).stdout;
    expect(spilled.trim().split(" ")[0]).toBe("200000");
  });

  it("is found by the words of its command and output, without a coordinator", async () => {
    const { run } = createProject();
    await run(["exec", "echo wolverine"]);
    await run(["exec", "echo badger"]);
    const { stdout } = await run(["runs", "list", "--search", "wolv"]);
    expect(stdout).toContain("echo wolverine");
    expect(stdout).not.toContain("badger");
  });

  it("fails a command that writes too much, on request", async () => {
    const { run } = createProject();
    const interruptedRun = await run(["exec", "yes", "--output-limit", "fail", "--max-output-kb", "4", "--json"]);
    expect(interruptedRun.code).toBe(124);
    expect(JSON.parse(interruptedRun.stdout).error.code).toBe("DROVER-EXE-004");
  });
});
