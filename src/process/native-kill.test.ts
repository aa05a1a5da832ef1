import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as later } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import {
  parseEnd,
  escapes,
  hostHasNamespaces,
  findMarked,
  createMark,
  prepareStage,
  waitForOutput,
  createShellCommand,
  waitUntil,
} from "../../test/launch-native.ts";

// The launchers in native/ kill every process that a command started.
const stage = prepareStage();
const { run } = stage;
afterAll(() => stage.remove());

const isRoot = process.getuid?.() === 0;
const nobody = 65534;
/** The current user and, if that is root, an ordinary user too. */
const users = isRoot ? [undefined, nobody] : [undefined];

describe.each(stage.combinations)("$name", ({ implementation, level }) => {
  const options = ["-p", String(process.pid), "-i", level];

  it("does not lose a SIGTERM right after the start", async () => {
    for (let round = 0; round < 20; round++) {
      const mark = createMark();
      const { child, finished } = stage.launch(implementation, { options, command: ["/bin/sleep", "sleep", mark] });
      await later(round / 4);
      child.kill("SIGTERM");
      expect((await finished).signal).toBe("SIGTERM");
      expect(findMarked(mark)).toEqual([]);
    }
  });

  it("forwards other signals to all processes and continues", async () => {
    const inner = `trap "echo inner" USR1; echo ready; while :; do sleep 0.02; done`;
    const launched = stage.launch(implementation, {
      options,
      command: createShellCommand(`trap "echo outer" USR1; setsid sh -c '${inner}' & while :; do sleep 0.02; done`),
    });
    await waitForOutput(launched, "ready");
    const both = Promise.all([waitForOutput(launched, "inner"), waitForOutput(launched, "outer")]);
    launched.child.kill("SIGUSR1");
    await both;
    launched.child.kill("SIGPWR");
    expect((await launched.finished).signal).toBe("SIGKILL");
  });

  it("counts and kills the processes left after a normal exit", async () => {
    const mark = createMark();
    const script = `sleep 0 & (setsid sleep ${mark} &) ; sleep ${mark} & sleep ${mark} & sleep 0.05; exit 4`;
    const result = await run(implementation, { options, command: createShellCommand(script) });
    expect(findMarked(mark)).toEqual([]);
    expect(result.code).toBe(4);
    expect(parseEnd(result)).toMatchObject({ status: 4 * 256, leftovers: 3 });
  });

  it("gives the other processes their grace period after SIGTERM", async () => {
    const cleanupScript = `trap "sleep 0.3; echo cleaned; exit 0" TERM; echo ready; while :; do sleep 0.02; done`;
    const mark = createMark();
    const launched = stage.launch(implementation, {
      options,
      command: createShellCommand(`sh -c '${cleanupScript}' & exec sleep ${mark}`),
    });
    await waitForOutput(launched, "ready");
    await waitUntil("the command runs", () => findMarked(mark).length > 0);
    launched.child.kill("SIGTERM");
    const result = await launched.finished;
    expect(result.stdout.toString()).toBe("ready\ncleaned\n");
    expect(parseEnd(result)).toMatchObject({ status: constants.signals.SIGTERM, leftovers: 0 });
  });

  it("ends the grace period on SIGPWR and still reports how the command ended", async () => {
    const [mark, commandMark] = [createMark(), createMark()];
    const command = createShellCommand(`(trap "" TERM; exec sleep ${mark}) & exec sleep ${commandMark}`);
    const launched = stage.launch(implementation, { options, command });
    await waitUntil("both run", () => findMarked(mark).length === 1 && findMarked(commandMark).length === 1);
    const [[survivorPid = 0], [commandPid = 0]] = [findMarked(mark), findMarked(commandMark)];
    launched.child.kill("SIGTERM");
    // The reaper is then its parent, and sleeps again once it has noticed the death.
    await waitUntil("only the process that ignores SIGTERM is left", () => !existsSync(`/proc/${commandPid}`));
    await waitUntil("the reaper has noticed", () =>
      readStatus(Number(readStatus(survivorPid, "PPid")), "State").startsWith("S"),
    );
    launched.child.kill("SIGPWR");
    const result = await launched.finished;
    expect(findMarked(mark)).toEqual([]);
    expect(parseEnd(result).status).toBe(constants.signals.SIGTERM);
  });

  const rounds = implementation.name === "perl" ? 30 : 80;
  it(`leaves no survivor of SIGPWR within 6 ms of the start, in ${rounds} rounds`, async () => {
    for (let round = 0; round < rounds; round++) {
      const mark = createMark();
      const { child, finished } = stage.launch(implementation, {
        options,
        command: stage.escape(escapes[round % escapes.length] ?? "setsid", mark),
      });
      await later(Math.random() * 6);
      child.kill("SIGPWR");
      const { signal } = await finished;
      expect(["SIGKILL", "SIGPWR"]).toContain(signal);
      expect(findMarked(mark)).toEqual([]);
    }
  });

  it.each(escapes.flatMap((name) => users.map((user) => [name, user] as const)))(
    "kills the escape %s (user %s) on SIGPWR and on a normal exit",
    async (name, user) => {
      const asUser = user === undefined ? {} : { user };
      const mark = createMark();
      const killed = stage.launch(implementation, { options, command: stage.escape(name, mark), ...asUser });
      await waitForOutput(killed, "ready");
      killed.child.kill("SIGPWR");
      const result = await killed.finished;
      expect(findMarked(mark)).toEqual([]);
      expect(result.lines[0]).toBe(`I ${level}`);
      expect(parseEnd(result)).toMatchObject({ status: constants.signals.SIGKILL, leftovers: 0 });

      const exitMark = createMark();
      const exited = await run(implementation, { options, command: stage.escape(name, exitMark, "leave"), ...asUser });
      expect(findMarked(exitMark)).toEqual([]);
      expect(exited.code).toBe(0);
      expect(parseEnd(exited).leftovers).toBeGreaterThan(0);
    },
  );

  it.each(escapes.flatMap((name) => users.map((user) => [name, user] as const)))(
    "kills the escape %s (user %s) when its parent is SIGKILLed",
    async (name, user) => {
      const mark = createMark();
      const launched = stage.launch(implementation, {
        // The shell in between is the parent that dies.
        within: ["/bin/sh", "-c", '"$@"; exit 0', "sh"],
        options: ["-i", level],
        command: stage.escape(name, mark),
        ...(user === undefined ? {} : { user }),
      });
      await waitForOutput(launched, "ready");
      launched.child.kill("SIGKILL");
      await waitUntil("everything is gone", () => findMarked(mark).length === 0, 5000);
    },
  );
});

describe.each(stage.implementations)("$name at group", (implementation) => {
  it("with -k leaves the leftovers alive after a normal exit", async () => {
    const mark = createMark();
    const result = await run(implementation, {
      options: ["-i", "auto", "-k"],
      command: stage.escape("setsid", mark, "leave"),
    });
    expect(result.lines[0]).toBe("I group");
    expect(parseEnd(result)).toMatchObject({ status: 0, leftovers: 0 });
    // During its exec the process has no arguments for a moment.
    await waitUntil("there is one survivor", () => findMarked(mark).length === 1);
    const [survivor = 0] = findMarked(mark);
    process.kill(survivor, "SIGKILL");
    await waitUntil("the survivor is gone", () => findMarked(mark).length === 0);
  });

  // Only root can create such a program, and only if set-uid programs work here.
  it.each(setUidWorks() ? ["a set-uid program"] : [])("does not hang on %s that it cannot kill", async () => {
    const mark = createMark();
    const asRoot = `${setUid("/usr/bin/setpriv")} --reuid=0 --regid=0 --clear-groups`;
    const script = `${asRoot} sleep ${mark} >/dev/null 2>&1 & read line; exit 0`;
    const launched = stage.launch(implementation, {
      options: ["-i", "group"],
      command: createShellCommand(script),
      stdin: "pipe",
      user: nobody,
    });
    // Before it executes sleep, it is setpriv with the same mark.
    await waitUntil("sleep runs as root", () =>
      findMarked(mark).some((pid) => readStatus(pid, "Name") === "sleep" && readStatus(pid, "Uid").startsWith("0\t")),
    );
    launched.child.stdin?.end("go on\n");
    const result = await launched.finished;
    expect(result.lines).toEqual([
      "I group",
      "U 1",
      `L ${findMarked(mark)[0]} sleep ${mark}`,
      expect.stringMatching(/^S 0 0 /),
    ]);
    for (const pid of findMarked(mark)) process.kill(pid, "SIGKILL");
    await waitUntil("it is gone", () => findMarked(mark).length === 0);
  });
});

describe.each(stage.implementations)("$name without permission for namespaces", (implementation) => {
  // A user namespace without capabilities in which no other one can be created.
  const script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"';
  const within = ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh"];
  const cases = hostHasNamespaces ? ["pid", "auto"] : [];

  it.each(cases)("refuses pid, and falls back to group at auto: %s", async (isolation) => {
    const mark = createMark();
    const launched = stage.launch(implementation, {
      within,
      options: ["-i", isolation],
      command: stage.escape("cleared-env", mark),
    });
    if (isolation === "pid") {
      const refused = await launched.finished;
      expect(refused).toMatchObject({ code: 125, lines: [`E unshare ${constants.errno.ENOSPC}`] });
      return;
    }
    await waitForOutput(launched, "ready");
    launched.child.kill("SIGPWR");
    const result = await launched.finished;
    expect(findMarked(mark)).toEqual([]);
    expect(result.lines[0]).toBe("I group");
  });

  it.each(cases)("continues without its own /proc if that is masked: %s", async (isolation) => {
    const masked = [
      "unshare",
      "--user",
      "--map-root-user",
      "--mount",
      "sh",
      "-c",
      'mount -t tmpfs none /proc/irq && exec unshare --user --map-root-user --mount "$@"',
      "sh",
    ];
    const result = await run(implementation, {
      within: masked,
      options: ["-i", isolation],
      command: createShellCommand("exit 6"),
    });
    expect(result.lines[0]).toBe("I pid-noproc");
    expect(parseEnd(result).status).toBe(6 * 256);
  });
});

function setUid(program: string): string {
  const copy = join(stage.directory, `set-uid-${basename(program)}`);
  copyFileSync(program, copy);
  chmodSync(copy, 0o4755);
  return copy;
}

function readStatus(pid: number, field: string): string {
  return new RegExp(`^${field}:\\t(.*)`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "";
}

function setUidWorks(): boolean {
  return (
    isRoot && spawnSync(setUid("/usr/bin/id"), ["-u"], { uid: nobody, gid: nobody, encoding: "utf8" }).stdout === "0\n"
  );
}
