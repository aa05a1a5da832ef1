import { chmodSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parseEnd, prepareStage, createShellCommand, waitUntil } from "../../test/launch-native.ts";

// The launchers in native/ start a command and report on it. native-kill.test.ts tests that they kill everything.
const stage = prepareStage();
const { run } = stage;
afterAll(() => stage.remove());

const users = process.getuid?.() === 0 ? [undefined, 54321] : [undefined];
const asUser = (user: number | undefined): { user?: number } => (user === undefined ? {} : { user });

it("finds a launcher to test on Linux", () => {
  expect(stage.implementations.length > 0).toBe(process.platform === "linux");
});

describe.each(stage.combinations)("$name", ({ implementation, level }) => {
  const options = ["-p", String(process.pid), "-i", level];

  it.each([0, 1, 2, 42, 125, 126, 127, 128, 255])("reports and mirrors exit code %i", async (code) => {
    const result = await run(implementation, { options, command: createShellCommand(`exit ${code}`) });
    expect(result).toMatchObject({ code, signal: null, stderr: "" });
    expect(result.lines[0]).toBe(`I ${level}`);
    expect(parseEnd(result)).toMatchObject({ status: code * 256, leftovers: 0 });
  });

  it("reports each process that outlives the command in a line of its own", async () => {
    // Waits until both run their own program instead of the shell's.
    const isSleeping = `case "$(cat /proc/$!/cmdline 2>/dev/null | tr '\\0' ' ')" in sleep*) break ;; esac`;
    const wait = `for i in $(seq 500); do ${isSleeping}; sleep 0.02; done`;
    const command = createShellCommand(
      `sleep 7001 & ${wait}; sh -c 'sleep 7002; echo "two\nlines"' & sleep 0.2; exit 0`,
    );
    const result = await run(implementation, { options, command });
    const named = result.lines.flatMap((line) => /^L \d+ (.*)$/.exec(line)?.[1] ?? []);
    expect(result.lines.at(-1)).toMatch(/^S /);
    if (result.lines[0] === "I pid-noproc") expect(named).toEqual([]);
    else expect(named).toContain("sleep 7001");
    expect(parseEnd(result).leftovers).toBeGreaterThanOrEqual(2);
  });

  it.each(["SIGTERM", "SIGKILL", "SIGSEGV", "SIGABRT", "SIGPIPE", "SIGPWR"] as const)(
    "reports and mirrors a death by %s",
    async (signal) => {
      const result = await run(implementation, {
        options,
        command: createShellCommand(`kill -${constants.signals[signal]} $$`),
      });
      expect(result).toMatchObject({ code: null, signal, stderr: "" });
      // 0x80 means that a core was dumped, which depends on the host
      expect(parseEnd(result).status & ~0x80).toBe(constants.signals[signal]);
    },
  );

  it("reports a death by a realtime signal, unlike Node", async () => {
    const result = await run(implementation, { options, command: createShellCommand("kill -40 $$") });
    expect(parseEnd(result).status & ~0x80).toBe(40);
  });

  it("reports the resource usage of all processes", async () => {
    const busy = "(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done)";
    const { userUs, systemUs, maxRssKb } = parseEnd(
      await run(implementation, { options, command: createShellCommand(busy) }),
    );
    expect(userUs + systemUs).toBeGreaterThan(20_000);
    expect(maxRssKb).toBeGreaterThan(200);
    // The launcher must not inherit Drover's own memory size.
    expect(maxRssKb).toBeLessThan(20_000);
  });

  it.each([
    ["missing file", "/nonexistent/program", constants.errno.ENOENT, 127],
    ["directory", "/", constants.errno.EACCES, 126],
    ["file that is not executable", "/etc/passwd", constants.errno.EACCES, 126],
  ])("reports why a %s was not started", async (_, path, errno, code) => {
    const result = await run(implementation, { options, command: [path, "program"] });
    expect(result).toMatchObject({ code, lines: [`I ${level}`, `E exec ${errno}`], stderr: "" });
  });

  it("runs a script without an interpreter line in the shell, and rejects binary files", async () => {
    const script = executable("plain-script", `echo "$0 $1 $#"; exit 3\n`);
    const result = await run(implementation, { options, command: [script, "name", "a b", "c"] });
    expect(result).toMatchObject({ code: 3, stderr: "" });
    expect(result.stdout.toString()).toBe(`${script} a b 2\n`);
    const foreign = executable("foreign-program", "\x7fELF\0\0\0\0");
    expect((await run(implementation, { options, command: [foreign, "x"] })).lines).toContain(
      `E exec ${constants.errno.ENOEXEC}`,
    );
  });

  it("passes arguments, name and environment unchanged", async () => {
    const environment = { PATH: "/usr/bin:/bin", ODD: "a\nb=c", EMPTY: "" };
    const result = await run(implementation, { options, command: ["/usr/bin/env", "env", "-0"], environment });
    expect(result.stdout.toString().split("\0").filter(Boolean).sort()).toEqual([
      "EMPTY=",
      "ODD=a\nb=c",
      "PATH=/usr/bin:/bin",
    ]);
    const named = await run(implementation, {
      options,
      command: ["/bin/sh", "my name", "-c", 'tr "\\0" "|" < /proc/$$/cmdline', "-x", "--", ""],
    });
    expect(named.stdout.toString()).toMatch(/^my name\|-c\|.*\|-x\|--\|\|$/);
  });

  it("keeps the user and group of the command", async () => {
    // Not 65534, which also stands for an unmapped user in a namespace.
    const user = process.getuid?.() === 0 ? 54321 : undefined;
    const result = await run(implementation, { options, command: createShellCommand("id -u; id -g"), ...asUser(user) });
    expect(result.stdout.toString()).toBe(`${user ?? process.getuid?.()}\n${user ?? process.getgid?.()}\n`);
  });

  it("passes 4 MB through stdin and stdout", async () => {
    const bytes = Buffer.alloc(4 << 20, "0123456789abcdef\n");
    const { child, finished } = stage.launch(implementation, { options, command: ["/bin/cat", "cat"], stdin: "pipe" });
    child.stdin?.end(bytes);
    const result = await finished;
    expect(result.stdout.equals(bytes)).toBe(true);
    expect(result.code).toBe(0);
  });

  it("passes only the first three descriptors and the one requested with -d", async () => {
    const descriptors = createShellCommand("cd /proc/self/fd && echo *");
    const within = ["/bin/bash", "-c", 'exec 4</etc 5</etc/passwd 9</ 10</ 77</etc 254</ 1000</; exec "$@"', "bash"];
    const listed = await run(implementation, { options, within, command: descriptors });
    expect(listed).toMatchObject({ code: 0, stderr: "" });
    // Descriptor 3 is the directory that the shell lists.
    expect(listed.stdout.toString()).toBe("0 1 2 3\n");
    const named = await run(implementation, { options: [...options, "-d", "5"], within, command: descriptors });
    expect(named.stdout.toString()).toBe("0 1 2 3 5\n");
    const missingProgram = await run(implementation, { options, within, command: ["/nonexistent/program", "program"] });
    expect(missingProgram.lines.at(-1)).toBe(`E exec ${constants.errno.ENOENT}`);
  });

  it("passes on the signal mask and the ignored signals unchanged", async () => {
    const signals = await run(implementation, {
      options,
      command: ["/bin/grep", "grep", "-E", "SigBlk|SigIgn", "/proc/self/status"],
    });
    expect(signals.stdout.toString()).toMatch(/^SigBlk:\s0{16}\nSigIgn:\s0{16}\n$/);
  });

  it.each(users)("ignores a forged report of the command (user %s)", async (user) => {
    // Write to the status file in every ancestor, but not to other files of the test runner.
    const forgeScript = `pid=$PPID; while [ "$pid" -gt 0 ] && [ -e /proc/$pid/stat ] && [ $pid != ${process.pid} ]; do
      for file in /proc/$pid/fd/*; do case $(readlink $file) in */drover-native-*) echo 'S 0 0 0 0 0' > $file ;; esac; done
      read -r _ _ _ pid _ < /proc/$pid/stat
    done 2>/dev/null; exit 5`;
    const result = await run(implementation, { options, command: createShellCommand(forgeScript), ...asUser(user) });
    expect(result).toMatchObject({ code: 5, lines: [`I ${level}`, expect.stringMatching(/^S 1280 0 /)] });
  });

  it.each(users)("hides its descriptors from the command (user %s), which itself can be traced", async (user) => {
    const inspectScript =
      "ls /proc/$PPID/fd >/dev/null 2>&1 && echo seen; ls /proc/$$/fd >/dev/null && cat /proc/$$/environ";
    const result = await run(implementation, {
      options,
      command: createShellCommand(inspectScript),
      environment: { PATH: "/usr/bin:/bin", MINE: "1" },
      ...asUser(user),
    });
    // Root can trace any process.
    const seesLauncher = user === undefined && process.getuid?.() === 0;
    expect(result.stdout.toString().startsWith("seen\n")).toBe(seesLauncher);
    expect(result.stdout.toString()).toContain("MINE=1\0");
    expect(result).toMatchObject({ code: 0, stderr: "" });
  });

  it("ignores a message that the command forges", async () => {
    // The message is MESSAGE_FAILED, followed by invalid numbers. The script skips the pipes that this process inherited.
    const ownDescriptors = readdirSync("/proc/self/fd").map((name) => readLinkOrEmpty(`/proc/self/fd/${name}`));
    const forgeScript = `for file in /proc/$PPID/fd/*; do case $(readlink $file) in ${ownDescriptors
      .filter((link) => link !== "")
      .map((link) => `'${link}'`)
      .join("|")}) ;; pipe:*)
      { printf '\\001\\000\\000\\000'; head -c 36 /dev/zero | tr '\\000' '\\377'; } > $file ;; esac; done 2>/dev/null; exit 5`;
    const result = await run(implementation, { options, command: createShellCommand(forgeScript) });
    expect(result).toMatchObject({ code: 5, signal: null, lines: [`I ${level}`, expect.stringMatching(/^S 1280 0 /)] });
  });

  it("keeps none of the command's pipes open", async () => {
    const launched = stage.launch(implementation, {
      options,
      command: createShellCommand("exec >&- 2>&-; read line; exit 5"),
      stdin: "pipe",
    });
    let ended = false;
    launched.child.stdout?.on("end", () => (ended = true));
    await waitUntil("stdout ends while the command still runs", () => ended);
    launched.child.stdin?.end("go on\n");
    expect((await launched.finished).code).toBe(5);
  });

  it("merges stderr into stdout in the order written with -m", async () => {
    const script = "i=0; while [ $i -lt 300 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done";
    const result = await run(implementation, { options: [...options, "-m"], command: createShellCommand(script) });
    const expected = Array.from({ length: 300 }, (_, i) => `o${i}\ne${i}\n`).join("");
    expect(result.stdout.toString()).toBe(expected);
    expect(result.stderr).toBe("");
  });

  it("limits CPU time, file size and open files of the command", async () => {
    const limits = ["-l", "cpu=100", "-l", "fsize=1048576", "-l", "nofile=64"];
    const result = await run(implementation, {
      options: [...options, ...limits],
      command: createShellCommand("ulimit -t; ulimit -H -t; ulimit -f; ulimit -n; ulimit -H -n"),
    });
    // One second between SIGXCPU and SIGKILL; ulimit prints file sizes in blocks of 512.
    expect(result.stdout.toString()).toBe("100\n101\n2048\n64\n64\n");
    const writer = await run(implementation, {
      options: [...options, "-l", "fsize=0"],
      command: createShellCommand(`echo x > ${join(stage.directory, `too-large-${level}`)}`),
    });
    expect(writer.lines.some((line) => line.startsWith("S "))).toBe(true);
    expect(writer.code).not.toBe(0);
  });

  it("moves the command into cgroups, and reports a failure", async () => {
    const file = join(stage.directory, `cgroup.procs-${implementation.name}-${level}`);
    writeFileSync(file, "");
    expect(
      (await run(implementation, { options: [...options, "-c", file], command: createShellCommand("exit 0") })).code,
    ).toBe(0);
    expect(readFileSync(file, "utf8")).toBe("0");
    const refused = await run(implementation, {
      options: [...options, "-c", "/nonexistent/cgroup.procs"],
      command: createShellCommand("exit 0"),
    });
    expect(refused).toMatchObject({ code: 125, lines: [`I ${level}`, `E cgroup ${constants.errno.ENOENT}`] });
  });

  it("starts the command in a new process group, except with -t", async () => {
    const command = createShellCommand(`cut -d" " -f5 /proc/$$/stat; echo $$`);
    const [own, pid] = (await run(implementation, { options, command })).stdout.toString().split("\n");
    expect(own).toBe(pid);
    const [shared, other] = (await run(implementation, { options: [...options, "-t"], command })).stdout
      .toString()
      .split("\n");
    expect(shared).not.toBe(other);
  });

  it("does not start for a parent that is gone", async () => {
    const result = await run(implementation, {
      options: ["-p", "1", "-i", level],
      command: createShellCommand("echo started"),
    });
    expect(result).toMatchObject({ code: 125, lines: [] });
    expect(result.stdout.toString()).toBe("");
  });
});

describe.each([...stage.implementations, ...stage.foreign])("$name, none and usage", (implementation) => {
  it("becomes the command at level none", async () => {
    const launched = stage.launch(implementation, {
      options: ["-i", "none", "-m", "-l", "nofile=77"],
      command: createShellCommand("echo $$; ulimit -n; echo e >&2; exit 8"),
    });
    const result = await launched.finished;
    expect(result).toMatchObject({ code: 8, lines: [], stderr: "" });
    expect(result.stdout.toString()).toBe(`${launched.child.pid}\n77\ne\n`);
  });

  it("reports at level none why the command could not start", async () => {
    const missingProgram = await run(implementation, {
      options: ["-i", "none"],
      command: ["/nonexistent/program", "x"],
    });
    expect(missingProgram).toMatchObject({ code: 127, lines: [`E exec ${constants.errno.ENOENT}`] });
    const cgroup = await run(implementation, {
      options: ["-i", "none", "-c", "/nonexistent/file"],
      command: createShellCommand("exit 0"),
    });
    expect(cgroup).toMatchObject({ code: 125, lines: [`E cgroup ${constants.errno.ENOENT}`] });
  });

  it.each([
    ["an unknown option", ["-z"], ["/bin/true", "true"]],
    ["an unknown level", ["-i", "strong"], ["/bin/true", "true"]],
    ["a limit that is not a number", ["-l", "cpu=1s"], ["/bin/true", "true"]],
    ["an unknown limit", ["-l", "nproc=1"], ["/bin/true", "true"]],
    ["a parent that is not a number", ["-p", "self"], ["/bin/true", "true"]],
    ["keeping leftovers in a PID namespace", ["-i", "pid", "-k"], ["/bin/true", "true"]],
    ["a missing name for the command", [], ["/bin/true"]],
  ])("rejects %s", async (_, options, command) => {
    const result = await run(implementation, { options, command });
    expect(result).toMatchObject({ code: 125, lines: [`E usage ${constants.errno.EINVAL}`] });
  });
});

describe.each([...stage.implementations, ...stage.foreign])("$name, renamed variables", (implementation) => {
  const perlOnly = implementation.name.includes("perl") ? { PERL_BADLANG: "0" } : {};
  const environment = {
    PATH: "/usr/bin:/bin",
    LC_ALL: "xx_XX.UTF-8",
    DROVER_KEEP_LD_LIBRARY_PATH: "/nonexistent",
    DROVER_KEEP_PERL5OPT: "-Mnonexistent",
    DROVER_KEEP_PERL_BADLANG: "1",
    DROVER_KEEP_DROVER_KEEP_LD_LIBRARY_PATH: "its own",
    DROVER_KEEP: "kept",
    ...perlOnly,
  };
  const variablesWith = async (options: string[]): Promise<string[]> => {
    const command = ["/usr/bin/env", "env"];
    const result = await run(implementation, { options: ["-i", "none", ...options], command, environment });
    expect(result.stderr).toBe("");
    return result.stdout.toString().split("\n").filter(Boolean).sort();
  };

  it("restores the names for the command with -u", async () => {
    expect(await variablesWith(["-u"])).toEqual([
      "DROVER_KEEP=kept",
      "DROVER_KEEP_LD_LIBRARY_PATH=its own",
      "LC_ALL=xx_XX.UTF-8",
      "LD_LIBRARY_PATH=/nonexistent",
      "PATH=/usr/bin:/bin",
      "PERL5OPT=-Mnonexistent",
      "PERL_BADLANG=1",
    ]);
  });

  it("passes the renamed variables unchanged without -u", async () => {
    expect(await variablesWith([])).toEqual(
      Object.entries(environment)
        .map((pair) => pair.join("="))
        .sort(),
    );
  });
});

function executable(name: string, content: string): string {
  const directory = join(stage.directory, "programs");
  mkdirSync(directory, { recursive: true });
  const path = join(directory, name);
  writeFileSync(path, content);
  chmodSync(path, 0o755);
  return path;
}

/** Returns an empty string for a descriptor that has been closed since it was listed. */
function readLinkOrEmpty(path: string): string {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (error instanceof Error && "code" in error) return "";
    throw error;
  }
}
