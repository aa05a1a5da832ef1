import { chmodSync, lstatSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { hostHas } from "../../test/fixtures/process/host.ts";
import { moves } from "../../test/fixtures/process/move-attacks.ts";
import {
  isRoot,
  listTree,
  nobody,
  openStage,
  type RunResult,
  secret,
  type Subject,
  subjects,
} from "../../test/fixtures/process/stage.ts";
import type { StartOnce } from "../../test/fixtures/process/start-once.ts";

// A command cannot move the parents of hidden or read-only directories, so that they stay protected for the next command.
const { stage, newDirectory, run: runOnce } = openStage("pin");

let root: string;
let home: string;
let drover: string;
let record: string;
let runs: string;
let config: string;
const listAncestors = (): string[] => [
  ".",
  "home",
  ...[".local/state/drover/project", ".local/state", ".local", ".config"].map((name) => join("home", name)),
];
beforeEach(() => {
  root = newDirectory();
  home = join(root, "home");
  drover = join(home, ".local", "state", "drover");
  record = join(drover, "project", "record");
  runs = join(drover, "project", "runs");
  config = join(home, ".config", "drover");
  for (const directory of [join(record, "logs"), join(drover, "heads"), join(runs, "tmp"), config])
    mkdirSync(directory, { recursive: true });
  mkdirSync(join(root, "work"));
  writeFileSync(join(record, "token"), secret);
  writeFileSync(join(drover, "heads", "one"), secret);
  writeFileSync(join(config, "trusted.json"), "nothing");
});

function run(
  script: string,
  { isolation, launchMethods, uid }: Omit<Subject, "name">,
  options: Partial<StartOnce["options"]> = {},
  workingDirectory = join(root, "work"),
  prefix: readonly string[] = [],
): RunResult {
  const startOnce: StartOnce = {
    command: {
      executable: "/bin/sh",
      arguments: ["-c", `{ ${script}\n} 2>&1; true`],
      workingDirectory,
      environment: {
        ROOT: root,
        HOME: home,
        RECORD: record,
        RUNS: runs,
        CONFIG: config,
        TMPDIR: join(root, "work"),
        INIT: join(stage, "native", "bin", `drover-init-linux-${process.arch}`),
      },
      timeoutMs: 60_000,
    },
    options: {
      isolation,
      temporaryDirectory: join(root, "work"),
      hide: [drover],
      show: [runs],
      readOnly: [config],
      writable: [root],
      ...options,
    },
    launchMethods: [launchMethods],
  };
  return runOnce(startOnce, { uid, directory: root, prefix });
}

/** The identity of each directory and the contents of the protected ones. */
function snapshot(): unknown {
  return {
    ancestors: listAncestors().map((name) => lstatSync(join(root, name)).ino),
    record: listTree(record),
    heads: listTree(join(drover, "heads")),
    token: readFileSync(join(record, "token"), "utf8"),
    config: listTree(config),
    trusted: readFileSync(join(config, "trusted.json"), "utf8"),
    mode: lstatSync(config).mode,
  };
}

describe.each(subjects)("$name", (subject) => {
  test.each(Object.entries(moves))("%s moves nothing, and the next command sees nothing more", (_, script) => {
    const before = snapshot();
    const first = run(script, subject);
    expect(first).toMatchObject({ isolation: subject.isolation, error: null });
    expect(snapshot()).toEqual(before);
    mkdirSync(join(root, "work"), { recursive: true });
    const next = run('find "$ROOT" -type f -exec cat {} +', subject);
    expect(next).toMatchObject({ isolation: subject.isolation, error: null });
    expect(first.stdout + next.stdout).not.toContain(secret);
  });

  test("gives root no second path to a shared temporary directory", () => {
    const shared = join(root, "home");
    chmodSync(shared, 0o1777);
    const { stdout } = run("cut -d' ' -f4,5 /proc/self/mountinfo", subject);
    const others = stdout.split("\n").filter((line) => line.startsWith(`${shared} `));
    // For a user it stays pinned, because only root can undo that.
    expect(others.length > 0).toBe(!isRoot || subject.uid !== undefined);
  });

  test("allows renames and links across pinned directories", () => {
    const script = `cd "$HOME" && mkdir -p .local/share .config/other && echo one > file && umask 077
      perl -e 'sub go { $_[0] or die "$_[1]: $!\\n" }
        go(rename("file", ".local/share/file"), "into .local"); go(link(".local/share/file", ".config/other/file"), "into .config");
        go(rename(".config/other", "other"), "a folder out of .config"); go(rename("other", ".local/state/other"), "into state");
        go(rename("$ENV{RUNS}/tmp", "$ENV{RUNS}/moved"), "in runs")' && cat .local/state/other/file && ls "$RUNS"`;
    expect(run(script, subject, { writable: [root, runs] }).stdout).toBe("one\nmoved\n");
  });

  test("shows the runs of its own project, writable, and no other state of the user", () => {
    const script = 'find "$HOME/.local/state/drover" | sort; cd "$RUNS" && echo made > tmp/made && cat tmp/made';
    const { stdout } = run(script, subject, { writable: [root, runs] });
    const project = join(drover, "project");
    expect(stdout).toBe(`${[drover, project, runs, join(runs, "tmp")].join("\n")}\nmade\n`);
    expect(readFileSync(join(runs, "tmp", "made"), "utf8")).toBe("made\n");
  });

  test("keeps the working directory inside the runs", () => {
    const cwd = join(runs, "tmp");
    const { stdout } = run("pwd; echo made > made", subject, { writable: [root, runs] }, cwd);
    expect([stdout, readdirSync(cwd)]).toEqual([`${cwd}\n`, ["made"]]);
  });

  test("shows a read-only directory inside a hidden one, and prevents changes", () => {
    const cache = join(drover, "project", "cache");
    mkdirSync(cache);
    writeFileSync(join(cache, "module.mjs"), "sound");
    const script = `cd "${cache}" && cat module.mjs; echo bad > module.mjs; echo bad > new; rm -f module.mjs; mv "${cache}" "${cache}2"`;
    const { stdout } = run(script, subject, { readOnly: [cache] });
    expect(stdout).toMatch(/^sound/);
    expect(readdirSync(cache)).toEqual(["module.mjs"]);
    expect(readFileSync(join(cache, "module.mjs"), "utf8")).toBe("sound");
  });

  test("protects a read-only directory if nothing is hidden", () => {
    const before = snapshot();
    const script = `${moves["writing the configuration"]}; mv "$HOME/.config" "$HOME/moved"; mv "$CONFIG" "$HOME/moved"`;
    expect(run(script, subject, { hide: [], show: [] })).toMatchObject({ isolation: subject.isolation, error: null });
    expect(snapshot()).toEqual(before);
  });

  test("starts nothing if a directory cannot be made read-only", () => {
    const file = join(root, "file");
    writeFileSync(file, "");
    const result = run('touch "$ROOT/work/ran"', subject, { readOnly: [file] });
    expect(result).toMatchObject({ isolation: null, error: { code: "DROVER-EXE-007" } });
    expect(readdirSync(join(root, "work"))).toEqual([]);
  });
});

describe.each(subjects.filter(({ isolation }) => isolation === "sandbox"))("$name", (subject) => {
  test("keeps the runs of other projects read-only in a writable HOME", () => {
    for (const name of ["mine", "other"]) mkdirSync(join(runs, name));
    const script =
      'echo x > "$RUNS/mine/made"; echo x > "$RUNS/other/made"; echo x > "$RUNS/made"; echo x > "$HOME/made"';
    run(script, subject, { writable: [home, join(runs, "mine")] });
    expect(listTree(runs).filter((path) => path.endsWith("made"))).toEqual([join(runs, "mine", "made")]);
    expect(readdirSync(home)).toContain("made");
  });
});

describe.runIf(isRoot && hostHas("pid"))("as a user whose directories contain mounts", () => {
  test.each(["static", "perl"] as const)("pins all directories, by %s", (launchMethods) => {
    const before = snapshot();
    const script = `${moves["renaming each folder"]}; ${moves["renaming from inside"]}; ls "$HOME/mounted" "$HOME/.local/mounted"; cat "$RECORD/token"`;
    mkdirSync(join(home, "mounted"));
    mkdirSync(join(home, ".local", "mounted"));
    const mounts = ["mounted", ".local/mounted", ".local/state/drover"].map(
      (name) => `mount -t tmpfs none '${home}/${name}'`,
    );
    const mountScript = `cp -a '${drover}' '${stage}/kept' && ${mounts.join(" && ")} && cp -a '${stage}/kept/.' '${drover}' && touch '${home}/mounted/one' '${home}/.local/mounted/two'`;
    const prefix = [
      "unshare",
      "-m",
      "sh",
      "-c",
      `${mountScript} && exec setpriv --reuid ${nobody} --regid ${nobody} --clear-groups "$@"`,
      "sh",
    ];
    const result = run(script, { isolation: "pid", launchMethods, uid: nobody }, {}, undefined, prefix);
    rmSync(join(stage, "kept"), { recursive: true });
    expect(result).toMatchObject({ isolation: "pid", error: null });
    expect(result.stdout).toContain("one");
    expect(result.stdout).toContain("two");
    expect(result.stdout).not.toContain(secret);
    expect(snapshot()).toEqual(before);
  });
});
