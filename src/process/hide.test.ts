import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { attacks, attacksUnlessRoot } from "../../test/fixtures/process/hide-attacks.ts";
import { hostHas } from "../../test/fixtures/process/host.ts";
import { isRoot, listTree, openStage, type RunResult, secret, subjects } from "../../test/fixtures/process/stage.ts";
import type { StartOnce } from "../../test/fixtures/process/start-once.ts";
import type { Isolation } from "../model/process.ts";

// Attacks of a command on a directory that is hidden from it, at each level, as root and as an ordinary user.
const { stage, newDirectory, run: runOnce } = openStage("hide");

let state: string;
let record: string;
beforeEach(() => {
  state = newDirectory();
  record = join(state, "record");
  mkdirSync(join(record, "logs"), { recursive: true });
  mkdirSync(join(state, "work"));
  writeFileSync(join(record, "token"), secret);
  writeFileSync(join(record, "logs", "run.jsonl"), secret);
});

interface RunOptions {
  uid?: number | undefined;
  isolation: Isolation | "auto";
  launchMethods?: StartOnce["launchMethods"];
  hide?: string[];
  cwd?: string;
  prefix?: string[];
}

function run(
  script: string,
  { uid, isolation, launchMethods, hide = [record], cwd = join(state, "work"), prefix = [] }: RunOptions,
): RunResult {
  const startOnce: StartOnce = {
    command: {
      executable: "/bin/sh",
      arguments: ["-c", script],
      workingDirectory: cwd,
      environment: { RECORD: record, STATE: state, STAGE: stage, TMPDIR: join(state, "work") },
      timeoutMs: 60_000,
    },
    options: { isolation, hide, temporaryDirectory: join(state, "work") },
    ...(launchMethods === undefined ? {} : { launchMethods }),
  };
  return runOnce(startOnce, { uid, directory: state, prefix });
}

describe.each(subjects)("$name", ({ isolation, launchMethods, uid }) => {
  const isUnrestricted = isRoot && uid === undefined && isolation === "pid";
  const runOptions: RunOptions = { uid, isolation, launchMethods: [launchMethods] };

  test.each(Object.entries(isUnrestricted ? attacks : { ...attacks, ...attacksUnlessRoot }))(
    "%s shows and changes nothing",
    (name, script) => {
      if (name.includes("capability") && !giveCapability()) return;
      const before = listTree(record);
      const { stdout, stderr, isolation: applied } = run(`{ ${script}\n} 2>&1; true`, runOptions);
      expect(applied).toBe(isolation);
      expect(stdout + stderr).not.toContain(secret);
      expect(listTree(record)).toEqual(before);
      expect(readFileSync(join(record, "token"), "utf8")).toBe(secret);
    },
  );

  test("makes the directory appear empty and read-only, and changes nothing else", () => {
    const script = 'ls -A "$RECORD" | wc -l; stat -c %a "$RECORD"; pwd; touch "$TMPDIR/made" && echo made';
    expect(run(script, runOptions)).toMatchObject({ exitCode: 0, stdout: `0\n555\n${join(state, "work")}\nmade\n` });
  });

  test("leaves the directory visible for Drover itself, during and after the command", () => {
    expect(run("true", runOptions).error).toBeNull();
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(record);
  });

  test("hides nested, repeated and linked directories, and ignores a missing one", () => {
    const other = join(state, "other");
    mkdirSync(other);
    writeFileSync(join(other, "token"), secret);
    symlinkSync(other, join(state, "link"));
    const hide = [join(record, "logs"), record, record, join(state, "link"), join(state, "nowhere")];
    const result = run('cat "$RECORD"/* "$STATE"/other/*; ls -d "$STATE/nowhere"; true', { ...runOptions, hide });
    expect(result).toMatchObject({ error: null, stdout: "" });
  });

  test("hides a name with spaces, quotes, newlines and 200 characters", () => {
    const oddPath = join(state, `a b'"\n\\040 ${"x".repeat(200)}`);
    mkdirSync(oddPath);
    writeFileSync(join(oddPath, "token"), secret);
    const { stdout, error } = run('cat "$STATE"/a*/token; true', { ...runOptions, hide: [oddPath] });
    expect([stdout, error]).toEqual(["", null]);
  });

  test("hides a path of almost the maximum length", () => {
    let deep = state;
    while (deep.length < 3600) deep = join(deep, "d".repeat(200));
    mkdirSync(deep, { recursive: true });
    writeFileSync(join(deep, "token"), secret);
    const { stdout, error } = run('find "$STATE" -name token; true', { ...runOptions, hide: [deep] });
    expect(stdout.split("\n").filter((line) => line.includes("ddd"))).toEqual([]);
    expect(error).toBeNull();
  });

  test("starts nothing in a working directory inside the hidden one", () => {
    const result = run('touch "$STATE/work/ran"', { ...runOptions, cwd: join(record, "logs") });
    expect(result).toMatchObject({ isolation: null, exitCode: null, error: { code: "DROVER-EXE-007" } });
    expect(result.error?.message).toContain("could not be hidden");
    expect(readdirSync(join(state, "work"))).toEqual([]);
  });

  test("shows a hidden working directory as empty", () => {
    expect(run("ls -A; cat token; true", { ...runOptions, cwd: record }).stdout).toBe("");
  });

  test("starts nothing if a file is in place of the hidden directory", () => {
    rmSync(record, { recursive: true });
    writeFileSync(record, secret);
    expect(run('cat "$RECORD"', runOptions)).toMatchObject({ isolation: null, error: { code: "DROVER-EXE-007" } });
  });
});

describe.each(subjects.filter(({ isolation }) => isolation === "sandbox"))(
  "$name",
  ({ isolation, launchMethods, uid }) => {
    test("finds no writable file system through other processes", () => {
      const outside = join(state, "outside");
      const script = `for p in /proc/[0-9]* /proc/[0-9]*/task/*; do
        touch "$p/root${outside}" "$p/cwd/../outside"; done; touch "${outside}"; ls /proc | grep -c '^[0-9]'`;
      const { stdout } = run(script, { uid, isolation, launchMethods: [launchMethods] });
      expect(Number(stdout)).toBeGreaterThan(1);
      expect(listTree(state)).not.toContain(outside);
    });
  },
);

describe.runIf(isRoot && hostHas("pid"))("other paths to the same directory", () => {
  const withMounts = (...mounts: string[]): string[] => [
    "unshare",
    "-m",
    "sh",
    "-c",
    `${mounts.join(" && ")} && exec "$@"`,
    "sh",
  ];
  test.each([
    ["a bind mount of its parent", () => withMounts(`mount --bind '${state}' '${state}/work'`), "work/record"],
    [
      "a bind mount of itself",
      () => withMounts(`mkdir -p '${state}/same' && mount --bind '${record}' '${state}/same'`),
      "same",
    ],
    ["a bind mount of what is in it", () => withMounts(`mount --bind '${record}/logs' '${state}/work'`), "work"],
    [
      "a bind mount of a bind mount",
      () =>
        withMounts(
          `mkdir -p '${state}/a' '${state}/b'`,
          `mount --bind '${state}' '${state}/a'`,
          `mount --rbind '${state}/a' '${state}/b'`,
        ),
      "b/record",
    ],
    [
      "a mount point with a blank",
      () => withMounts(`mkdir -p '${state}/a b' && mount --bind '${state}' '${state}/a b'`),
      "a b/record",
    ],
    [
      "a file system of its own",
      () => withMounts(`mount -t tmpfs none '${record}' && echo ${secret} > '${record}/token'`),
      "record",
    ],
  ])("%s is hidden too", (_, createPrefix, path) => {
    for (const launchMethods of [["static"], ["perl"]] as const) {
      rmSync(join(state, "same"), { recursive: true, force: true });
      const script = `cat "$STATE/${path}"/*; find "$STATE" -name token -exec cat {} +; true`;
      const result = run(script, {
        isolation: "pid",
        launchMethods: [...launchMethods],
        prefix: createPrefix(),
        cwd: "/",
      });
      expect(result).toMatchObject({ isolation: "pid", error: null, stdout: "" });
    }
  });
});

describe("without support for hiding", () => {
  test.each(["group", "none"] as const)("isolation %s hides nothing and does not fail", (isolation) => {
    expect(run('cat "$RECORD/token"', { isolation })).toMatchObject({ exitCode: 0, stdout: secret, isolation });
  });

  // A file in place of the hidden directory lets the launcher create namespaces, but not mount.
  test.runIf(hostHas("pid"))("pid fails, and auto falls back to group", () => {
    const notADirectory = join(state, "not-a-directory");
    writeFileSync(notADirectory, "");
    expect(run("true", { isolation: "pid", hide: [notADirectory] })).toMatchObject({
      isolation: null,
      error: { code: "DROVER-EXE-007" },
    });
    expect(run("true", { isolation: "auto", hide: [notADirectory] })).toMatchObject({
      isolation: "group",
      error: null,
    });
  });

  test("without a launcher, pid fails and auto selects group", () => {
    expect(run("true", { isolation: "pid", launchMethods: ["plain"] }).error?.code).toBe("DROVER-EXE-007");
    expect(run("true", { isolation: "auto", launchMethods: ["plain"] })).toMatchObject({
      isolation: "group",
      error: null,
    });
  });
});

/** Lets a copy of umount unmount the record. Returns false if this user or file system does not support that. */
function giveCapability(): boolean {
  const file = join(stage, "umount");
  spawnSync("cp", ["/bin/umount", file]);
  chmodSync(file, 0o755);
  return spawnSync("setcap", ["cap_sys_admin+ep", file]).status === 0;
}

test.runIf(isRoot && hostHas("sandbox")).each(["static", "perl"] as const)(
  "root in a sandbox by %s cannot change settings of the host",
  (launchMethods) => {
    const script = "find /proc -maxdepth 3 -not -path '/proc/[0-9]*' -writable; echo looked";
    expect(run(script, { isolation: "sandbox", launchMethods: [launchMethods], uid: undefined }).stdout).toBe(
      "looked\n",
    );
  },
);
