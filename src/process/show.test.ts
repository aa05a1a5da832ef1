import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { isRoot, openStage, type RunResult, subjects } from "../../test/fixtures/process/stage.ts";
import type { StartOnce } from "../../test/fixtures/process/start-once.ts";
import type { StartOptions } from "../model/process.ts";

// A command sees the shown directories inside a hidden one, and nothing else in it.
const { program, newDirectory, run: runOnce } = openStage("show");

let place: string;
beforeEach(() => {
  place = newDirectory();
  for (const name of ["own", "other"]) {
    mkdirSync(join(place, "nested", name), { recursive: true });
    writeFileSync(join(place, "nested", name, "log"), `${name}\n`);
  }
  mkdirSync(join(place, "work"));
});

interface RunOptions {
  uid: number | undefined;
  launchMethods: NonNullable<StartOnce["launchMethods"]>;
  options: StartOptions;
  cwd?: string;
}

const at = (...names: string[]): string => join(place, ...names);

function once(script: string, { launchMethods, options, cwd }: Omit<RunOptions, "uid">): StartOnce {
  const command = {
    executable: "/bin/sh",
    arguments: ["-c", script],
    workingDirectory: cwd ?? at("work"),
    environment: { PLACE: place, TMPDIR: at("work") },
    timeoutMs: 60_000,
  };
  return { command, launchMethods, options: { hide: [at("nested")], show: [at("nested", "own")], ...options } };
}

function run(script: string, { uid, ...runOptions }: RunOptions): RunResult {
  return runOnce(once(script, runOptions), { uid, directory: place });
}

describe.each(subjects)("$name", ({ isolation, launchMethods, uid }) => {
  const runOptions = (more: StartOptions = {}): RunOptions => ({
    uid,
    launchMethods: [launchMethods],
    options: { isolation, ...more },
  });
  const writable = (): StartOptions => ({ writable: [at("nested", "own")] });

  test("shows the real directory, and nothing else of the hidden one", () => {
    const script = 'ls -A "$PLACE/nested"; cat "$PLACE/nested/own/log"; echo more >> "$PLACE/nested/own/log"';
    const result = run(script, runOptions(writable()));
    expect(result).toMatchObject({ isolation, error: null, exitCode: 0, stdout: "own\nown\n" });
    expect(readFileSync(at("nested", "own", "log"), "utf8")).toBe("own\nmore\n");
  });

  test.each([
    'cat "$PLACE/nested/other/log"',
    'echo forged >> "$PLACE/nested/other/log"',
    'cat "$PLACE/nested/own/../other/log"',
    'cd "$PLACE/nested/own"; cat ../other/log',
    'ln -s ../other "$PLACE/nested/own/way"; cat "$PLACE/nested/own/way/log"',
    'mkdir -p "$PLACE/nested/other"; echo forged > "$PLACE/nested/other/log"',
    'mv "$PLACE/nested/own" "$PLACE/nested/other"',
    'rm -rf "$PLACE/nested"',
    'ln "$PLACE/nested/other/log" "$PLACE/work/log"; cat "$PLACE/work/log"',
    'find "$PLACE" -name log -exec cat {} +',
    'cat /proc/self/cwd/../nested/other/log /proc/1/root"$PLACE/nested/other/log" /proc/1/cwd/../nested/other/log',
    'unshare -Ur sh -c "umount $PLACE/nested/own; umount $PLACE/nested; cat $PLACE/nested/other/log"',
  ])("`%s` reaches no other directory", (script) => {
    if (script.startsWith("unshare") && uid === undefined && isRoot && isolation === "pid") return;
    const { stdout, error } = run(`{ ${script}\n} 2>&1; true`, runOptions(writable()));
    expect(error).toBeNull();
    expect(stdout.split("\n")).not.toContain("other");
    expect(readdirSync(at("nested", "other"))).toEqual(["log"]);
    expect(readFileSync(at("nested", "other", "log"), "utf8")).toBe("other\n");
  });

  test("hides a directory that is created while the command runs", () => {
    const makes = `mkdir '${at("nested", "later")}'; echo done > '${at("work", "made")}'`;
    const script = 'while ! test -s "$PLACE/work/made"; do sleep 0.05; done; ls -A "$PLACE/nested"';
    spawnSync("sh", ["-c", `(while ! test -e '${at("work", "go")}'; do sleep 0.05; done; ${makes}) >/dev/null 2>&1 &`]);
    expect(run(`touch "$PLACE/work/go"; ${script}`, runOptions()).stdout).toBe("own\n");
    expect(readdirSync(at("nested"))).toContain("later");
  });

  test("allows a working directory inside a shown one", () => {
    mkdirSync(at("nested", "own", "deep"));
    const result = run("pwd; cat ../log; echo new > made", { ...runOptions(), cwd: at("nested", "own", "deep") });
    expect(result).toMatchObject({ error: null, stdout: `${at("nested", "own", "deep")}\nown\n` });
    expect(readFileSync(at("nested", "own", "deep", "made"), "utf8")).toBe("new\n");
  });

  test("accepts links, duplicates, unusual names, missing directories and paths that are not hidden", () => {
    const odd = `a b'"\\ ${"x".repeat(150)}`;
    for (const name of [odd, "third"]) mkdirSync(at("nested", name));
    symlinkSync(at("nested"), at("link"));
    const show = [at("link", "own"), at("nested", "own"), at("nested", odd), at("nested", "third"), at("work")];
    const result = run(
      'ls -A "$PLACE/nested"; ls -d "$PLACE/work"',
      runOptions({ show: [...show, at("nested", "nowhere")] }),
    );
    expect(result).toMatchObject({ error: null, exitCode: 0 });
    expect(result.stdout.trim().split("\n").sort()).toEqual([odd, "own", "third", at("work")].sort());
  });

  test("keeps a directory hidden that is both hidden and shown, even through a symlink", () => {
    symlinkSync(at("nested", "own"), at("link"));
    const hide = [at("nested"), at("nested", "own")];
    for (const show of [at("nested", "own"), at("link")])
      expect(
        run('ls -A "$PLACE/nested" "$PLACE/nested/own" "$PLACE/link/"', runOptions({ hide, show: [show] })).stdout,
      ).not.toContain("log");
  });

  test("starts nothing if a file replaces a shown directory", () => {
    rmSync(at("nested", "own"), { recursive: true });
    writeFileSync(at("nested", "own"), "");
    expect(run('touch "$PLACE/work/ran"', runOptions())).toMatchObject({
      isolation: null,
      error: { code: "DROVER-EXE-007" },
    });
    expect(readdirSync(at("work"))).toEqual([]);
  });

  test("allows connections to a socket in a shown directory", () => {
    const socket = at("nested", "own", "s");
    const listen = `import net from "node:net"; import fs from "node:fs";
      const server = net.createServer((one) => { one.end("answered\\n"); server.close(); }).listen(${JSON.stringify(socket)},
        () => { setTimeout(() => process.exit(), 120000).unref(); fs.chownSync(${JSON.stringify(socket)}, ${uid ?? 0}, ${uid ?? 0}); });`;
    if (uid === undefined && !isRoot) return;
    const words = ["-c", `"$0" --input-type=module -e "$1" >/dev/null 2>&1 &`, process.execPath, listen];
    spawnSync("sh", words);
    const ask = `const ask = () => require("net").connect(process.argv[1]).on("error", () => setTimeout(ask, 50)).pipe(process.stdout); ask()`;
    expect(run(`exec '${process.execPath}' -e '${ask}' "$PLACE/nested/own/s"`, runOptions()).stdout).toBe("answered\n");
  });

  test.runIf(isolation === "pid")("lets a nested command hide and show the same directories again", () => {
    const inner = JSON.stringify(once('ls -A "$PLACE/nested"; cat "$PLACE/nested/own/log"', runOptions()));
    writeFileSync(at("work", "inner"), inner);
    const { stdout } = run(`'${process.execPath}' '${program}' "$(cat "$PLACE/work/inner")"`, runOptions());
    expect(JSON.parse(stdout)).toMatchObject({ isolation: "pid", error: null, stdout: "own\nown\n" });
  });
});

test.each(["group", "none"] as const)("isolation %s hides nothing", (isolation) => {
  const result = run('ls -A "$PLACE/nested"', { uid: undefined, launchMethods: ["static"], options: { isolation } });
  expect(result.stdout).toBe("other\nown\n");
});
