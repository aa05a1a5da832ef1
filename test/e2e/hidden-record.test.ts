import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { nestedDirectory, recordDirectory, runsDirectory } from "../../src/model/state-layout.ts";
import { hostHas } from "../fixtures/process/host.ts";
import { bin, drover, createDirectory, isRoot, nobodyUid, type CommandResult } from "./drover.ts";
import { startDrover } from "./start-drover.ts";

const secret = "only-the-operator-knows";
const levels = (["pid", "sandbox"] as const).filter((level) => hostHas(level));
const users = isRoot ? [undefined, nobodyUid] : [undefined];
const subjects = levels.flatMap((isolation) =>
  users.map((uid) => ({ isolation, uid, who: isRoot && uid === undefined ? "root" : "a user" })),
);

/** A project whose record is in `state/record` and contains a secret besides Drover's own files. */
function project(uid: number | undefined, isolation: string) {
  const cwd = createDirectory(uid);
  const env = { DROVER_STATE_DIR: join(cwd, "state"), DROVER_TRUST: cwd };
  const record = recordDirectory(env.DROVER_STATE_DIR);
  const write = (path: string, text: string): void => {
    mkdirSync(join(cwd, path, ".."), { recursive: true });
    writeFileSync(join(cwd, path), text);
  };
  mkdirSync(record, { recursive: true, mode: 0o700 });
  writeFileSync(join(record, "canary"), secret);
  const profile = { type: "procedural", agents_dir: "./agents", isolation };
  write("profiles/here.json", JSON.stringify(profile));
  if (uid !== undefined) for (const path of [cwd, ...listFilesBelow(cwd)]) chownSync(path, uid, uid);
  const run = (...args: string[]): Promise<CommandResult> =>
    drover(args, { cwd, env, ...(uid === undefined ? {} : { uid }) });
  return {
    cwd,
    record,
    write,
    run,
    exec: (script: string) => run("exec", "--isolation", isolation, "--shell", script),
  };
}

function listFilesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" }).map((name) => join(directory, name));
}

describe.each(subjects)("at $isolation as $who", ({ isolation, uid }) => {
  it("exec shows its command an empty record and passes on no descriptor of it", async () => {
    const { exec, record } = project(uid, isolation);
    const inspect = "ls -A state/record; cat state/record/canary; ls -l /proc/self/fd | grep state; echo done";
    const { stdout, code } = await exec(inspect);
    expect([stdout, code]).toEqual(["done\n", 0]);
    expect(readFileSync(join(record, "canary"), "utf8")).toBe(secret);
  });

  it.each([
    "git init -q . && git clean -ffdxq",
    "rm -rf state",
    "rm -rf ./* ./.[a-z]*",
    "find . -delete",
    "rm -rf state/record/*",
  ])("`%s` leaves the record unchanged", async (command) => {
    const { exec, run, record } = project(uid, isolation);
    expect((await exec("true")).code).toBe(0);
    const entriesBefore = readdirSync(record);
    await exec(command);
    expect(readdirSync(record)).toEqual(expect.arrayContaining(entriesBefore));
    expect((await run("audit", "verify")).code).toBe(0);
    expect((await run("runs", "list", "--quiet")).stdout.trim().split("\n")).toHaveLength(2);
  });

  it("no command can read a token, a key or the database", async () => {
    const { exec } = project(uid, isolation);
    const find = "find state '(' -name '*token*' -o -name 'audit.*' -o -name 'drover.db*' -o -name '*.lock' ')'";
    await exec("true");
    expect((await exec(find)).stdout).toBe("");
  });

  it("a command cannot create a record or nested directory although the audit is off", async () => {
    const { exec, run, record, write, cwd } = project(uid, isolation);
    const nested = nestedDirectory(runsDirectory(dirname(record)));
    rmSync(dirname(record), { recursive: true });
    write("drover.yaml", "execution:\n  audit:\n    enabled: false\n");
    await exec(
      `mkdir -p ${record} ${dirname(nested)}; echo planted > ${record}/audit.key; ln -s ${cwd} ${nested}; echo planted > ${nested}/file`,
    );
    expect(readdirSync(record)).toEqual([]);
    expect(lstatSync(nested).isDirectory()).toBe(true);
    expect(readdirSync(nested)).toEqual([]);
    rmSync(join(cwd, "drover.yaml"));
    expect((await exec("true")).code).toBe(0);
    expect((await run("audit", "verify")).code).toBe(0);
  });

  it("a run and its on_finish command see an empty record", async () => {
    const { run, write, record, cwd } = project(uid, isolation);
    const inspect = `ls -A ${record}; cat ${record}/canary; echo done`;
    write("agents/look.yaml", `name: look\ncommand: sh look.sh\non_finish: sh after.sh\n`);
    write("look.sh", inspect);
    write("after.sh", `exec > ${join(cwd, "after")} 2>&1\n${inspect}`);
    if (uid !== undefined) for (const path of listFilesBelow(cwd)) chownSync(path, uid, uid);
    expect((await run("run", "look")).stdout).toBe("done\n");
    const afterOutput = readFileSync(join(cwd, "after"), "utf8");
    expect(afterOutput).toContain("done");
    expect(afterOutput).not.toContain(secret);
    expect(readFileSync(join(record, "canary"), "utf8")).toBe(secret);
  });
});

/** A user's HOME, with projects whose state is in it. */
function createHome(uid: number | undefined) {
  const top = createDirectory(uid);
  const home = join(top, "home");
  const state = join(home, ".local", "state", "drover");
  for (const name of ["home", "one", "two"]) mkdirSync(join(top, name));
  for (const name of ["one", "two"]) mkdirSync(join(top, name, ".git"));
  if (uid !== undefined) for (const path of listFilesBelow(top)) chownSync(path, uid, uid);
  const run = (name: string, ...words: string[]): Promise<CommandResult> =>
    drover(words, { cwd: join(top, name), env: { HOME: home }, ...(uid === undefined ? {} : { uid }) });
  const keys = () => listFilesBelow(state).filter((path) => path.endsWith("audit.key"));
  return { top, home, state, run, keys };
}

describe.each(subjects)("a home at $isolation as $who", ({ isolation, uid }) => {
  const inspect = 'find "$HOME/.." -name audit.key -exec cat {} +; ls -A "$HOME/.local/state/drover/"*; echo done';

  it.each([
    ["renames the directory of its state", 'mv "$HOME/.local/state/drover/projects" "$HOME/.local/state/drover/gone"'],
    ["renames a directory around all state", 'mv "$HOME/.local" "$HOME/gone"; mv "$HOME/.local/state" "$HOME/gone"'],
    ["makes another project of its directory", 'echo "{}" > ../drover.yaml; echo "{}" > drover.yaml; rm -rf .git'],
    [
      "removes what it can of its home",
      'rm -rf "$HOME/.local" "$HOME/.config"; cd "$HOME" && git init -q . && git clean -ffdxq',
    ],
  ])("a command that %s does not expose the record to the next one", async (_, harm) => {
    const { run, keys } = createHome(uid);
    for (const name of ["one", "two"]) expect((await run(name, "exec", "true")).code).toBe(0);
    const entriesBefore = keys();
    expect(entriesBefore).toHaveLength(2);
    const options = ["--isolation", isolation, "--shell"];
    await run("one", "exec", ...options, harm);
    expect(keys()).toEqual(entriesBefore);
    for (const name of ["one", "two"]) {
      const next = await run(name, "exec", ...options, inspect);
      const leaked = next.stdout.split("\n").filter((line) => /^[0-9a-f]{32,}$|audit/.test(line));
      expect([leaked, next.stdout.endsWith("done\n")]).toEqual([[], true]);
    }
    expect((await run("two", "audit", "verify")).code).toBe(0);
  });

  it("a command cannot forge the second head or trust a directory", async () => {
    const { home, state, run } = createHome(uid);
    expect((await run("one", "exec", "true")).code).toBe(0);
    const heads = listFilesBelow(join(state, "heads"));
    const forge =
      'rm -f "$HOME"/.local/state/drover/heads/*; echo x > "$HOME/.local/state/drover/heads/x"; echo x > "$HOME/.config/drover/trusted.json"';
    await run("one", "exec", "--isolation", isolation, "--shell", forge);
    expect(listFilesBelow(join(state, "heads"))).toEqual(heads);
    expect(readdirSync(join(home, ".config", "drover"))).toEqual([]);
    expect((await run("one", "audit", "verify")).code).toBe(0);
  });

  it("a command inside a command works and is recorded", async () => {
    const { run } = createHome(uid);
    const droverCommand = `${process.execPath} ${bin}`;
    const outer = await run(
      "one",
      "exec",
      "--isolation",
      isolation,
      "--shell",
      `${droverCommand} exec "echo inside" && ${droverCommand} exec --json true`,
    );
    expect(outer).toMatchObject({ code: 0, stdout: expect.stringMatching(/^inside\n/) });
    if (isolation === "pid") expect(outer.stdout).toContain('"isolation":"pid"');
    expect((await run("one", "audit", "verify")).code).toBe(0);
  });
});

describe.each(subjects)(
  "a runner that reaches its coordinator by the socket in the record, at $isolation as $who,",
  ({ isolation, uid }) => {
    /** A coordinator with its record in the user state directory. */
    async function start(beforeRunner: (record: string) => void) {
      const { top, home, run } = createHome(uid);
      const cwd = join(top, "one");
      const droverCommand = `'${process.execPath}' '${bin}'`;
      for (const name of ["profiles", "agents"]) mkdirSync(join(cwd, name));
      const profile = { type: "procedural", agents_dir: "./agents", isolation };
      writeFileSync(join(cwd, "profiles", "here.json"), JSON.stringify(profile));
      writeFileSync(join(cwd, "agents", "look.yaml"), `name: look\ncommand: sh ${join(cwd, "look.sh")}\n`);
      writeFileSync(join(cwd, "agents", "child.yaml"), "name: child\ncommand: echo reached\n");
      writeFileSync(
        join(cwd, "look.sh"),
        `find "$HOME" '(' -name '*token*' -o -name 'audit.*' -o -name 'drover.db*' ')'; ${droverCommand} run child 2>&1; echo done\n`,
      );
      if (uid !== undefined) for (const path of listFilesBelow(cwd)) chownSync(path, uid, uid);
      const options = { cwd, env: { HOME: home }, uid };
      await startDrover(["coordinator", "--port", "0"], { ...options, ready: /^Serving \S+/m });
      const record = dirname(listFilesBelow(home).find((path) => path.endsWith("/record/sock"))!);
      const token = readFileSync(join(record, "token"), "utf8").trim();
      beforeRunner(record);
      const env = { HOME: home, DROVER_API_URL: `unix:${join(record, "sock")}`, DROVER_API_KEY: token };
      const runner = await startDrover(["runner", "-x", "./profiles/here.json"], {
        ...options,
        env,
        ready: /^Offers /m,
      });
      const inspect = (): Promise<CommandResult> =>
        drover(["run", "look"], { cwd, env, ...(uid === undefined ? {} : { uid }) });
      return { run, runner, look: inspect };
    }

    it("shows commands nothing of the record, and they reach the coordinator by its port", async () => {
      const { look: inspect, runner } = await start(() => undefined);
      expect(await inspect()).toMatchObject({ code: 0, stdout: "reached\ndone\n" });
      expect(runner.output).not.toContain("cannot reach");
    });

    it("shows commands nothing of the record if the coordinator announces no port, and both sides say what to do", async () => {
      const { look: inspect, runner } = await start((record) => rmSync(join(record, "coordinator.json")));
      const { stdout } = await inspect();
      expect(stdout).toMatch(/^drover: This command is inside a run .*DROVER_API_URL.*\n.*DROVER_COMMANDS_URL/);
      expect(stdout).not.toMatch(/\/record\/|\/heads\//);
      expect(runner.output).toMatch(/cannot reach the coordinator.*DROVER_COMMANDS_URL/);
    });
  },
);

it.runIf(hostHas("pid"))("protects a folder from the next command although an earlier one closed it", async () => {
  const { home, run } = createHome(isRoot ? nobodyUid : undefined);
  const exec = (script: string) => run("one", "exec", "--isolation", "pid", "--shell", script);
  expect((await exec('chmod 0 "$HOME/.config"')).code).toBe(0);
  await exec('chmod 700 "$HOME/.config"; echo x > "$HOME/.config/drover/trusted.json"');
  chmodSync(join(home, ".config"), 0o700);
  expect(readdirSync(join(home, ".config", "drover"))).toEqual([]);
});

it.each(["group", "none"])("%s does not hide the record", async (isolation) => {
  const { exec } = project(undefined, isolation);
  expect((await exec("cat state/record/canary")).stdout).toBe(secret);
});
