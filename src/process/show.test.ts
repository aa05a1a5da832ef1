import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { isRoot, openStage, type RunResult, subjects } from "../../test/fixtures/process/stage.ts";
import type { StartOnce } from "../../test/fixtures/process/start-once.ts";
import type { StartOptions } from "../model/process.ts";

// A command sees the shown directories inside a hidden one, and nothing else in it.
const { program, newDirectory, run: runOnce } = openStage("show");

let root: string;
beforeEach(() => {
  root = newDirectory();
  for (const name of ["own", "other"]) {
    mkdirSync(join(root, "nested", name), { recursive: true });
    writeFileSync(join(root, "nested", name, "log"), `${name}\n`);
  }
  mkdirSync(join(root, "work"));
});

interface RunOptions {
  uid: number | undefined;
  launchMethods: NonNullable<StartOnce["launchMethods"]>;
  options: StartOptions;
  cwd?: string;
}

const pathTo = (...names: string[]): string => join(root, ...names);

function toStartOnce(script: string, { launchMethods, options, cwd }: Omit<RunOptions, "uid">): StartOnce {
  const command = {
    executable: "/bin/sh",
    arguments: ["-c", script],
    workingDirectory: cwd ?? pathTo("work"),
    environment: { ROOT: root, TMPDIR: pathTo("work") },
    timeoutMs: 60_000,
  };
  return {
    command,
    launchMethods,
    options: {
      hide: [pathTo("nested")],
      show: [pathTo("nested", "own")],
      temporaryDirectory: pathTo("work"),
      ...options,
    },
  };
}

function run(script: string, { uid, ...runOptions }: RunOptions): RunResult {
  return runOnce(toStartOnce(script, runOptions), { uid, directory: root });
}

describe.each(subjects)("$name", ({ isolation, launchMethods, uid }) => {
  const runOptions = (changes: StartOptions = {}): RunOptions => ({
    uid,
    launchMethods: [launchMethods],
    options: { isolation, ...changes },
  });
  const writable = (): StartOptions => ({ writable: [pathTo("nested", "own")] });

  test("shows the real directory, and nothing else of the hidden one", () => {
    const script = 'ls -A "$ROOT/nested"; cat "$ROOT/nested/own/log"; echo more >> "$ROOT/nested/own/log"';
    const result = run(script, runOptions(writable()));
    expect(result).toMatchObject({ isolation, error: null, exitCode: 0, stdout: "own\nown\n" });
    expect(readFileSync(pathTo("nested", "own", "log"), "utf8")).toBe("own\nmore\n");
  });

  test.each([
    'cat "$ROOT/nested/other/log"',
    'echo forged >> "$ROOT/nested/other/log"',
    'cat "$ROOT/nested/own/../other/log"',
    'cd "$ROOT/nested/own"; cat ../other/log',
    'ln -s ../other "$ROOT/nested/own/way"; cat "$ROOT/nested/own/way/log"',
    'mkdir -p "$ROOT/nested/other"; echo forged > "$ROOT/nested/other/log"',
    'mv "$ROOT/nested/own" "$ROOT/nested/other"',
    'rm -rf "$ROOT/nested"',
    'ln "$ROOT/nested/other/log" "$ROOT/work/log"; cat "$ROOT/work/log"',
    'find "$ROOT" -name log -exec cat {} +',
    'cat /proc/self/cwd/../nested/other/log /proc/1/root"$ROOT/nested/other/log" /proc/1/cwd/../nested/other/log',
    'unshare -Ur sh -c "umount $ROOT/nested/own; umount $ROOT/nested; cat $ROOT/nested/other/log"',
  ])("`%s` reaches no other directory", (script) => {
    if (script.startsWith("unshare") && uid === undefined && isRoot && isolation === "pid") return;
    const { stdout, error } = run(`{ ${script}\n} 2>&1; true`, runOptions(writable()));
    expect(error).toBeNull();
    expect(stdout.split("\n")).not.toContain("other");
    expect(readdirSync(pathTo("nested", "other"))).toEqual(["log"]);
    expect(readFileSync(pathTo("nested", "other", "log"), "utf8")).toBe("other\n");
  });

  test("hides a directory that is created while the command runs", () => {
    const createScript = `mkdir '${pathTo("nested", "later")}'; echo done > '${pathTo("work", "made")}'`;
    const script = 'while ! test -s "$ROOT/work/made"; do sleep 0.05; done; ls -A "$ROOT/nested"';
    spawnSync("sh", [
      "-c",
      `(while ! test -e '${pathTo("work", "go")}'; do sleep 0.05; done; ${createScript}) >/dev/null 2>&1 &`,
    ]);
    expect(run(`touch "$ROOT/work/go"; ${script}`, runOptions()).stdout).toBe("own\n");
    expect(readdirSync(pathTo("nested"))).toContain("later");
  });

  test("allows a working directory inside a shown one", () => {
    mkdirSync(pathTo("nested", "own", "deep"));
    const result = run("pwd; cat ../log; echo new > made", { ...runOptions(), cwd: pathTo("nested", "own", "deep") });
    expect(result).toMatchObject({ error: null, stdout: `${pathTo("nested", "own", "deep")}\nown\n` });
    expect(readFileSync(pathTo("nested", "own", "deep", "made"), "utf8")).toBe("new\n");
  });

  test("accepts links, duplicates, unusual names, missing directories and paths that are not hidden", () => {
    const oddName = `a b'"\\ ${"x".repeat(150)}`;
    for (const name of [oddName, "third"]) mkdirSync(pathTo("nested", name));
    symlinkSync(pathTo("nested"), pathTo("link"));
    const show = [
      pathTo("link", "own"),
      pathTo("nested", "own"),
      pathTo("nested", oddName),
      pathTo("nested", "third"),
      pathTo("work"),
    ];
    const result = run(
      'ls -A "$ROOT/nested"; ls -d "$ROOT/work"',
      runOptions({ show: [...show, pathTo("nested", "nowhere")] }),
    );
    expect(result).toMatchObject({ error: null, exitCode: 0 });
    expect(result.stdout.trim().split("\n").sort()).toEqual([oddName, "own", "third", pathTo("work")].sort());
  });

  test("keeps a directory hidden that is both hidden and shown, even through a symlink", () => {
    symlinkSync(pathTo("nested", "own"), pathTo("link"));
    const hide = [pathTo("nested"), pathTo("nested", "own")];
    for (const show of [pathTo("nested", "own"), pathTo("link")])
      expect(
        run('ls -A "$ROOT/nested" "$ROOT/nested/own" "$ROOT/link/"', runOptions({ hide, show: [show] })).stdout,
      ).not.toContain("log");
  });

  test("starts nothing if a file replaces a shown directory", () => {
    rmSync(pathTo("nested", "own"), { recursive: true });
    writeFileSync(pathTo("nested", "own"), "");
    expect(run('touch "$ROOT/work/ran"', runOptions())).toMatchObject({
      isolation: null,
      error: { code: "DROVER-EXE-007" },
    });
    expect(readdirSync(pathTo("work"))).toEqual([]);
  });

  test("allows connections to a socket in a shown directory", () => {
    const socket = pathTo("nested", "own", "s");
    const listenScript = `import net from "node:net"; import fs from "node:fs";
      const server = net.createServer((one) => { one.end("answered\\n"); server.close(); }).listen(${JSON.stringify(socket)},
        () => { setTimeout(() => process.exit(), 120000).unref(); fs.chownSync(${JSON.stringify(socket)}, ${uid ?? 0}, ${uid ?? 0}); });`;
    if (uid === undefined && !isRoot) return;
    const shellArguments = ["-c", `"$0" --input-type=module -e "$1" >/dev/null 2>&1 &`, process.execPath, listenScript];
    spawnSync("sh", shellArguments);
    const connectScript = `const ask = () => require("net").connect(process.argv[1]).on("error", () => setTimeout(ask, 50)).pipe(process.stdout); ask()`;
    expect(run(`exec '${process.execPath}' -e '${connectScript}' "$ROOT/nested/own/s"`, runOptions()).stdout).toBe(
      "answered\n",
    );
  });

  test.runIf(isolation === "pid")("lets a nested command hide and show the same directories again", () => {
    const inner = JSON.stringify(toStartOnce('ls -A "$ROOT/nested"; cat "$ROOT/nested/own/log"', runOptions()));
    writeFileSync(pathTo("work", "inner"), inner);
    const { stdout } = run(`'${process.execPath}' '${program}' "$(cat "$ROOT/work/inner")"`, runOptions());
    expect(JSON.parse(stdout)).toMatchObject({ isolation: "pid", error: null, stdout: "own\nown\n" });
  });
});

test.each(["group", "none"] as const)("isolation %s hides nothing", (isolation) => {
  const result = run('ls -A "$ROOT/nested"', { uid: undefined, launchMethods: ["static"], options: { isolation } });
  expect(result.stdout).toBe("other\nown\n");
});
