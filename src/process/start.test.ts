import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { hostHas } from "../../test/fixtures/process/host.ts";
import type { Command, ProcessEnd, StartCommand, StartOptions } from "../model/process.ts";
import { findNativeDirectory } from "./native-directory.ts";
import { createStart, start } from "./start.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-start-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const neverAborted = new AbortController().signal;
const sh = (
  startCommand: StartCommand,
  script: string,
  options: StartOptions = {},
  commandOptions: Partial<Command> = {},
): Promise<ProcessEnd> =>
  startCommand({ executable: "sh", arguments: ["-c", script], ...commandOptions }, options, neverAborted).result;
const nativeDirectory = findNativeDirectory()!;
const launcherName = `drover-init-linux-${process.arch}`;

describe.runIf(process.platform === "linux")("launch methods", () => {
  test.each([
    ["built for other machines only", (copy: string) => rmSync(join(copy, "bin", launcherName))],
    ["not executable, as on a noexec mount", (copy: string) => chmodSync(join(copy, "bin", launcherName), 0o644)],
    ["missing", (copy: string) => rmSync(join(copy, "bin"), { recursive: true })],
  ])("falls back to perl if the static launcher is %s", async (_, damage) => {
    const startCommand = startWithDamage(damage);
    for (const expected of [3, 4]) {
      const ended = await sh(startCommand, `exit ${expected}`);
      expect(ended).toMatchObject({ exitCode: expected, resources: { maxRssKb: expect.any(Number) } });
    }
  });

  test("falls back to a process group without a launcher, and rejects stronger levels", async () => {
    const startCommand = createStart({ nativeDirectory: join(directory, "none") });
    expect(await sh(startCommand, "exit 3")).toMatchObject({ exitCode: 3, isolation: "group", resources: null });
    expect(await sh(startCommand, "exit 3", { isolation: "group" })).toMatchObject({ isolation: "group" });
    expect(await sh(startCommand, "exit 3", { isolation: "pid" })).toMatchObject({
      isolation: null,
      exitCode: null,
      error: { code: "DROVER-EXE-007" },
    });
    expect(await sh(startCommand, "exit 3", { isolation: "sandbox" })).toMatchObject({
      isolation: null,
      error: { code: "DROVER-EXE-007" },
    });
  });

  test("continues without a launcher that is deleted later", async () => {
    const startCommand = startWithDamage(() => undefined);
    expect(await sh(startCommand, "exit 3")).toMatchObject({ exitCode: 3 });
    rmSync(join(directory, "native"), { recursive: true });
    mkdirSync(join(directory, "native"));
    expect(await sh(startCommand, "exit 4")).toMatchObject({ exitCode: 4 });
  });

  test("reports realtime signals and resource usage through the launcher", async () => {
    expect(await sh(start, "kill -35 $$")).toMatchObject({
      exitCode: null,
      signal: "SIG35",
      error: { code: "DROVER-EXE-003" },
    });
    const { resources } = await sh(start, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
    expect(resources!.userMs + resources!.systemMs).toBeGreaterThan(1);
    expect(resources!.maxRssKb).toBeGreaterThan(100);
  });
});

test("selects level group for auto with leftovers: keep, and does not change group and none", async () => {
  const levelFor = async (isolation: "auto" | "group" | "none"): Promise<ProcessEnd["isolation"]> =>
    (await sh(start, "exit 0", { leftovers: "keep", isolation })).isolation;
  expect([await levelFor("auto"), await levelFor("group"), await levelFor("none")]).toEqual(["group", "group", "none"]);
});

test.each(["pid", "sandbox"] as const)("starts nothing if leftovers must be kept at level %s", async (isolation) => {
  const ended = await sh(start, `touch ${directory}/ran`, { leftovers: "keep", isolation });
  expect(ended).toMatchObject({ isolation: null, exitCode: null, error: { code: "DROVER-EXE-007" } });
  expect(ended.error?.message).toContain("cannot keep leftovers");
  expect(existsSync(join(directory, "ran"))).toBe(false);
});

test("does not trust a forged report of a command that killed its launcher", async () => {
  const forgeScript = `for file in /proc/$PPID/fd/* /proc/${process.pid}/fd/*; do
    case $(readlink $file) in /dev/shm/*\\(deleted\\)) echo 'S 0 0 0 0 0' > $file ;; esac
  done 2>/dev/null; kill -9 $PPID`;
  expect(await sh(start, forgeScript, { isolation: "group" })).toMatchObject({
    signal: "SIGKILL",
    error: { code: "DROVER-EXE-003" },
  });
});

test("supports timeouts longer than Node's timers", async () => {
  expect(await sh(start, "sleep 0.1", {}, { timeoutMs: 2 ** 40 })).toMatchObject({ exitCode: 0, stopped: null });
});

test("reports the names of withheld variables", async () => {
  const running = start(
    { executable: "true" },
    { environment: { mode: "inherit" }, parentEnvironment: { PATH: process.env["PATH"], MY_TOKEN: "t" } },
    neverAborted,
  );
  expect(running.withheld).toEqual(["MY_TOKEN"]);
  await running.result;
});

test("searches for the executable in the child's PATH, not in its own", async () => {
  const environment = { PATH: join(directory, "empty") };
  const run = (isolation: "none" | "auto"): Promise<ProcessEnd> =>
    start({ executable: "true", environment }, { isolation, environment: { mode: "replace" } }, neverAborted).result;
  expect((await run("none")).error?.code).toBe("DROVER-EXE-001");
  expect((await run("auto")).error?.code).toBe("DROVER-EXE-001");
});

test("lets many commands share one abort signal without a warning", async () => {
  const warnings: Error[] = [];
  const recordWarning = (warning: Error): unknown => warnings.push(warning);
  process.on("warning", recordWarning);
  const controller = new AbortController();
  const all = Array.from(
    { length: 30 },
    () => start({ executable: "sleep", arguments: ["60"] }, {}, controller.signal).result,
  );
  controller.abort("shutdown");
  expect((await Promise.all(all)).every((ended) => ended.stopped === "shutdown")).toBe(true);
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", recordWarning);
  expect(warnings).toEqual([]);
});

test("does not throw errors of the stdin pipe", async () => {
  const running = start({ executable: "true" }, { stdin: "pipe" }, neverAborted);
  running.stdout!.resume();
  await running.result;
  running.stdin!.write("too late");
  await new Promise((resolve) => setTimeout(resolve, 20));
});

describe.runIf(hostHas("sandbox"))("the sandbox", () => {
  test("allows writing to the working, temporary and listed directories only", async () => {
    const outside = mkdtempSync(join(tmpdir(), "drover-outside-"));
    mkdirSync(join(directory, "tmp"));
    expect(await runInSandbox("touch here && touch $TMPDIR/there")).toMatchObject({
      exitCode: 0,
      isolation: "sandbox",
    });
    expect((await runInSandbox(`touch ${outside}/x`)).exitCode).not.toBe(0);
    expect((await runInSandbox("touch /etc/drover-test || touch /usr/drover-test")).exitCode).not.toBe(0);
    expect(await runInSandbox(`touch ${outside}/x`, { writable: [outside] })).toMatchObject({ exitCode: 0 });
    rmSync(outside, { recursive: true });
  });

  test.each(["/", "another directory"])("is not wider for a command that sets its TMPDIR to %s", async (name) => {
    const outside = mkdtempSync(join(tmpdir(), "drover-outside-"));
    const given = mkdtempSync(join(tmpdir(), "drover-given-"));
    const variables = { environment: { TMPDIR: name === "/" ? "/" : outside, GIVEN: given } };
    const script = `echo x > ${outside}/x; echo x > $GIVEN/x; cat $GIVEN/x; printenv TMPDIR`;
    const running = start(
      { executable: "sh", arguments: ["-c", script], workingDirectory: directory, ...variables },
      { isolation: "sandbox", parentEnvironment: { ...process.env, TMPDIR: given } },
      neverAborted,
    );
    running.stderr!.resume();
    expect(await text(running.stdout!)).toBe(`x\n${variables.environment.TMPDIR}\n`);
    expect(await running.result).toMatchObject({ isolation: "sandbox" });
    expect(existsSync(join(outside, "x"))).toBe(false);
    for (const path of [outside, given]) rmSync(path, { recursive: true });
  });

  test("adds nothing to the stderr of the command", async () => {
    const running = start(
      { executable: "sh", arguments: ["-c", "echo mine >&2; kill -15 $$"], workingDirectory: directory },
      { isolation: "sandbox" },
      neverAborted,
    );
    running.stdout!.resume();
    const stderr = await text(running.stderr!);
    expect(await running.result).toMatchObject({ signal: "SIGTERM", isolation: "sandbox" });
    expect(stderr).toBe("mine\n");
  });

  test("gives a stopped command its grace period", async () => {
    const controller = new AbortController();
    const script = "trap 'sleep 0.2; echo cleaned; exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    const running = start(
      { executable: "sh", arguments: ["-c", script], workingDirectory: directory },
      { isolation: "sandbox", graceMs: 10_000 },
      controller.signal,
    );
    running.stderr!.resume();
    running.stdout!.once("data", () => controller.abort("user"));
    const stdout = await text(running.stdout!);
    expect(await running.result).toMatchObject({ exitCode: 7, stopped: "user" });
    expect(stdout).toContain("cleaned\n");
  });

  test("cannot be made writable from inside", async () => {
    expect(
      (
        await runInSandbox(
          "mount -o remount,rw / 2>/dev/null; mount -o remount,rw,bind / 2>/dev/null; touch /drover-test",
        )
      ).exitCode,
    ).not.toBe(0);
  });

  test("reports a fault if bwrap cannot create it", async () => {
    writeFileSync(join(directory, "bwrap"), "#!/bin/sh\necho 'bwrap: no permissions' >&2; exit 1\n", { mode: 0o755 });
    const ended = await withPath(
      `${directory}:${process.env["PATH"]}`,
      () => start({ executable: "true" }, { isolation: "sandbox" }, neverAborted).result,
    );
    expect(ended).toMatchObject({ isolation: null, exitCode: null, error: { code: "DROVER-EXE-007" } });
  });
});

test("reports a fault for a sandbox without bwrap, with the package to install", async () => {
  const ended = await withPath(
    join(directory, "empty"),
    () => start({ executable: "/bin/true" }, { isolation: "sandbox" }, neverAborted).result,
  );
  expect(ended).toMatchObject({ isolation: null, error: { code: "DROVER-EXE-007" } });
  if (process.platform === "linux") expect(ended.error?.message).toContain("bubblewrap");
});

/** Calls a function with another PATH for this process, which determines where bwrap is found. */
async function withPath<T>(path: string, call: () => Promise<T>): Promise<T> {
  const originalPath = process.env["PATH"];
  process.env["PATH"] = path;
  try {
    return await call();
  } finally {
    process.env["PATH"] = originalPath;
  }
}

/** Creates a `start` with a damaged copy of the native directory. */
function startWithDamage(damage: (directory: string) => void): StartCommand {
  cpSync(nativeDirectory, join(directory, "native"), { recursive: true });
  damage(join(directory, "native"));
  return createStart({ nativeDirectory: join(directory, "native") });
}

function runInSandbox(script: string, options: StartOptions = {}): Promise<ProcessEnd> {
  const temporaryDirectory = join(directory, "tmp");
  const paths = { workingDirectory: directory, environment: { TMPDIR: temporaryDirectory } };
  return sh(start, script, { isolation: "sandbox", temporaryDirectory, ...options }, paths);
}
