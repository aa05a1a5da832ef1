import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type {
  Command,
  ProcessEnd,
  Isolation,
  RunningProcess,
  StartCommand,
  StartOptions,
} from "../../src/model/process.ts";
import { waitUntil, exitOnceEscaped, createMark, findSurvivors } from "../fixtures/process/survivors.ts";

export interface ProcessSubject {
  start: StartCommand;
  isolation: Isolation | "auto";
  /** The level that a result reports as applied. */
  applied: Isolation;
  /** What is killed with the command: everything it started, its process group, or only itself. */
  reach: "everything" | "group" | "command";
}

const fixtures = join(import.meta.dirname, "..", "fixtures");

/** What every process starter promises. */
export function processContract(name: string, { start, isolation, applied, reach }: ProcessSubject): void {
  let directory: string;
  beforeAll(() => {
    directory = realpathSync(mkdtempSync(join(tmpdir(), "drover-process-")));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const begin = (command: Command, options: StartOptions = {}, signal = new AbortController().signal): RunningProcess =>
    start(
      { workingDirectory: directory, ...command },
      { isolation, graceMs: 300, environment: { mode: "merge" }, ...options },
      signal,
    );
  const sh = (script: string, options?: StartOptions, changes?: Partial<Command>): RunningProcess =>
    begin({ executable: "sh", arguments: ["-c", script], ...changes }, options);
  const escape = (
    script: string,
    mark: string,
    command: "stay" | "leave",
    options?: StartOptions,
    changes?: Partial<Command>,
  ): RunningProcess =>
    begin(
      { executable: "sh", arguments: [join(fixtures, "escape", `${script}.sh`), mark, command], ...changes },
      options,
    );
  /** The command exits once the process it leaves behind has escaped. */
  const leaveBehind = async (script: string, mark: string, options?: StartOptions) => {
    const running = escape(script, mark, "leave", { stdin: "pipe", ...options });
    const [end] = await Promise.all([finish(running), exitOnceEscaped(running, mark)]);
    return end;
  };

  const runForCode = async (command: Command): Promise<unknown> => {
    const end = await begin(command).result;
    expect(end).toMatchObject({ exitCode: null, signal: null, isolation: null });
    return end.error?.code;
  };

  // Run concurrently, because these tests mostly wait.
  describe.concurrent(`process contract: ${name}`, () => {
    test("a successful command has code 0, no error, its times and the applied level", async () => {
      const end = await finish(sh("echo out; echo err >&2"));
      expect(end).toMatchObject({
        exitCode: 0,
        signal: null,
        stopped: null,
        error: null,
        isolation: applied,
        leftovers: 0,
        out: "out\n",
        err: "err\n",
      });
      expect(end.durationMs).toBeGreaterThan(0);
      expect(end.endTime.getTime()).toBeGreaterThanOrEqual(end.startTime.getTime());
    });

    test.each([1, 42, 125, 126, 127, 128, 137, 255])("exit code %i is reported unchanged", async (code) => {
      expect(await finish(sh(`exit ${code}`))).toMatchObject({
        exitCode: code,
        signal: null,
        error: { code: "DROVER-EXE-003" },
      });
    });

    test.each(["HUP", "INT", "ABRT", "KILL", "SEGV", "PIPE", "TERM", "USR1"])(
      "death by SIG%s is reported by name, without an exit code",
      async (signal) => {
        expect(await finish(sh(`kill -${signal} $$`))).toMatchObject({
          exitCode: null,
          signal: `SIG${signal}`,
          stopped: null,
          error: { code: "DROVER-EXE-003" },
        });
      },
    );

    test("arguments arrive unchanged", async () => {
      const hostile = [
        "",
        " ",
        "a b",
        "$(id)",
        "`id`",
        "--",
        "-x",
        "'\"",
        "*",
        "\n",
        "\\",
        "%s",
        "ü€😀",
        "a".repeat(100_000),
      ];
      const { out } = await finish(
        begin({ executable: process.execPath, arguments: [join(fixtures, "process", "argv.mjs"), ...hostile] }),
      );
      expect(JSON.parse(out).arguments).toEqual(hostile);
    });

    test("with replace the child has the given variables and the ids, and nothing else", async () => {
      // Variables that affect perl or name an unknown locale must only reach the command.
      const givenVariables = { GIVEN: "1=2\n", PERL5OPT: "-Mno_such_module", PERL_BADLANG: "1", LC_ALL: "xx_YY.UTF-8" };
      const running = begin(
        {
          executable: process.execPath,
          arguments: [join(fixtures, "process", "argv.mjs")],
          environment: givenVariables,
        },
        { environment: { mode: "replace" }, ids: { DROVER_RUN_ID: "r" } },
      );
      const { out, err } = await finish(running);
      const { environment } = JSON.parse(out);
      for (const set of ["PWD", "OLDPWD", "SHLVL", "_"]) delete environment[set]; // A sandbox and a shell set these.
      expect({ environment, err }).toEqual({ environment: { ...givenVariables, DROVER_RUN_ID: "r" }, err: "" });
    });

    test("the command runs in the working directory, and a relative path starts there", async () => {
      writeFileSync(join(directory, "here.sh"), "#!/bin/sh\npwd\n");
      chmodSync(join(directory, "here.sh"), 0o755);
      expect((await finish(begin({ executable: "./here.sh" }))).out).toBe(`${directory}\n`);
    });

    test("an executable text file without a #! line is run by sh, as from a shell", async () => {
      writeFileSync(join(directory, "bare"), "echo bare $1\n");
      chmodSync(join(directory, "bare"), 0o755);
      expect((await finish(begin({ executable: "./bare", arguments: ["one"] }))).out).toBe("bare one\n");
    });

    test("stdin takes text of any size, bytes, a stream, or is empty", async () => {
      const text = "0123456789abcdef".repeat(250_000);
      expect((await finish(begin({ executable: "cat" }, { stdin: Buffer.from(text) }))).out === text).toBe(true);
      expect((await finish(begin({ executable: "cat" }, { stdin: Buffer.from("bytes") }))).out).toBe("bytes");
      expect((await finish(begin({ executable: "cat" }))).out).toBe("");
      const running = begin({ executable: "cat" }, { stdin: "pipe" });
      running.stdin!.write("first ");
      running.stdin!.end("last");
      expect((await finish(running)).out).toBe("first last");
    });

    test("a command that does not read its stdin is not an error", async () => {
      expect(await finish(begin({ executable: "true" }, { stdin: Buffer.alloc(1_000_000, "x") }))).toMatchObject({
        exitCode: 0,
        error: null,
      });
    });

    test("merged output keeps the order of the two streams", async () => {
      const end = await finish(sh("for i in 1 2 3 4; do echo o$i; echo e$i >&2; done", { output: "merged" }));
      expect(end).toMatchObject({
        out: "o1\ne1\no2\ne2\no3\ne3\no4\ne4\n",
        err: "",
        exitCode: 0,
        isolation: applied,
      });
    });

    test("output none leaves no streams", async () => {
      const running = sh("echo x; echo y >&2", { output: "none" });
      expect([running.stdout, running.stderr]).toEqual([null, null]);
      expect(await running.result).toMatchObject({ exitCode: 0 });
    });

    test("output of any size is complete, including what was written just before the exit", async () => {
      const { out } = await finish(sh("head -c 3000000 /dev/zero | tr '\\0' x; echo end"));
      expect(out.length).toBe(3_000_004);
      expect(out.endsWith("xend\n")).toBe(true);
    });

    test("a consumer that is slower than the command loses nothing", async () => {
      const running = sh("head -c 400000 /dev/zero", { drainMs: 20 });
      let bytes = 0;
      for await (const chunk of running.stdout!) {
        bytes += chunk.length;
        await new Promise((resolve) => setTimeout(resolve, 60));
      }
      expect(bytes).toBe(400_000);
      expect((await running.result).exitCode).toBe(0);
    });

    test("unread output does not keep the command from ending", async () => {
      expect(await sh("head -c 50000 /dev/zero").result).toMatchObject({ exitCode: 0, error: null });
    });

    test("a timeout kills a command that ignores SIGTERM with SIGKILL, after the grace period", async () => {
      const end = await finish(sh("trap '' TERM; echo ready; while :; do sleep 0.05; done", {}, { timeoutMs: 4000 }));
      expect(end).toMatchObject({
        exitCode: null,
        signal: "SIGKILL",
        stopped: "timeout",
        error: { code: "DROVER-EXE-002" },
        out: "ready\n",
      });
      expect(end.durationMs).toBeGreaterThanOrEqual(4300);
    });

    test("on SIGTERM a command may clean up within the grace period, and its own exit is reported", async () => {
      const running = sh("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.02; done", { graceMs: 20_000 });
      await firstChunk(running.stdout!);
      const [end] = await Promise.all([finish(running), running.kill("user")]);
      expect(end).toMatchObject({ exitCode: 7, signal: null, stopped: "user", error: { code: "DROVER-EXE-011" } });
      expect(end.out).toContain("bye");
    });

    test("kill may be called often: the first reason counts, all calls resolve at the end, and none restarts the grace period", async () => {
      const running = sh("trap '' TERM; echo ready; while :; do sleep 0.05; done", { graceMs: 200 });
      await firstChunk(running.stdout!);
      const first = running.kill("idle");
      // Would never end if each call restarted the grace period.
      const kills = setInterval(() => void running.kill("user"), 20);
      await Promise.all([first, running.kill("timeout")]);
      clearInterval(kills);
      expect(await running.result).toMatchObject({ stopped: "idle", signal: "SIGKILL" });
      await running.kill("shutdown");
      expect((await running.result).stopped).toBe("idle");
    });

    test("an immediate kill does not wait for the grace period, whichever comes first", async () => {
      const immediate = new AbortController();
      const options = { graceMs: 60_000, hurry: immediate.signal };
      const startIgnoringSigterm = (): RunningProcess =>
        sh("trap '' TERM; echo ready; while :; do sleep 0.05; done", options);
      const running = startIgnoringSigterm();
      await firstChunk(running.stdout!);
      const killPromise = running.kill("user");
      immediate.abort();
      await killPromise;
      const later = startIgnoringSigterm();
      await firstChunk(later.stdout!);
      await later.kill("user");
      expect([await running.result, await later.result]).toMatchObject([
        { stopped: "user", signal: "SIGKILL" },
        { stopped: "user", signal: "SIGKILL" },
      ]);
    });

    test("a command can be killed right after its start", async () => {
      const mark = createMark();
      const running = begin({ executable: "sleep", arguments: [mark] });
      await running.kill("user");
      expect(await running.result).toMatchObject({ stopped: "user", error: { code: "DROVER-EXE-011" } });
      expect(findSurvivors(mark)).toEqual([]);
    });

    test("an abort stops the command and its reason is reported; any other reason counts as the user's", async () => {
      const shutdown = new AbortController();
      const otherController = new AbortController();
      const starts = [
        begin({ executable: "sleep", arguments: [createMark()] }, {}, shutdown.signal),
        begin({ executable: "sleep", arguments: [createMark()] }, {}, otherController.signal),
      ];
      shutdown.abort("shutdown");
      otherController.abort(new Error("whatever"));
      expect((await Promise.all(starts.map((running) => running.result))).map((ended) => ended.stopped)).toEqual([
        "shutdown",
        "user",
      ]);
    });

    test("with an aborted signal nothing is started", async () => {
      const running = begin({ executable: "touch", arguments: ["started"] }, {}, AbortSignal.abort("lease_lost"));
      expect(running.pid).toBeUndefined();
      expect(await running.result).toMatchObject({
        stopped: "lease_lost",
        isolation: null,
        exitCode: null,
        error: { code: "DROVER-EXE-011" },
      });
    });

    test("distinguishes why a command cannot be executed: not found, no permission, a directory, a missing interpreter, too long", async () => {
      writeFileSync(join(directory, "plain.txt"), "no program\n");
      writeFileSync(join(directory, "orphan.sh"), "#!/no/such/interpreter\n");
      chmodSync(join(directory, "orphan.sh"), 0o755);
      expect(await runForCode({ executable: "no-such-command-anywhere" })).toBe("DROVER-EXE-001");
      expect(await runForCode({ executable: "./no-such-file" })).toBe("DROVER-EXE-001");
      expect(await runForCode({ executable: "./plain.txt" })).toBe("DROVER-EXE-005");
      expect(await runForCode({ executable: "/" })).toBe("DROVER-EXE-005");
      expect(await runForCode({ executable: "./orphan.sh" })).toBe("DROVER-EXE-005");
      expect(await runForCode({ executable: "true", arguments: ["x".repeat(200_000)] })).toBe("DROVER-EXE-006");
    });

    test("a bad request is thrown before anything starts", () => {
      expect(() => begin({ executable: " " })).toThrow(expect.objectContaining({ code: "DROVER-USE-002" }));
      expect(() => begin({ executable: "true", workingDirectory: join(directory, "none") })).toThrow(
        expect.objectContaining({ code: "DROVER-USE-003" }),
      );
    });

    test("a pipe that another process holds open does not delay the result", async () => {
      const mark = createMark();
      const end = await leaveBehind("held-stdout", mark, { drainMs: 100 });
      expect(end).toMatchObject({ exitCode: 0, out: "ready\n", error: null });
      endAll(findSurvivors(mark));
    });

    // A PID namespace asked for by name refuses to keep any.
    const keepLeftovers: StartOptions = {
      leftovers: "keep",
      isolation: isolation === "pid" || isolation === "sandbox" ? "auto" : isolation,
    };
    test.each(["echo more; sleep 0.01", "echo a great lot more of it, and no end"])(
      "another process that keeps writing does not delay the result: %s",
      async (what) => {
        const leftovers: StartOptions = reach === "command" ? { leftovers: "kill" } : keepLeftovers;
        const options: StartOptions = { drainMs: 50, stdin: "pipe", ...leftovers };
        // It dies of SIGPIPE once its output has no reader any more.
        const running = sh(`(while :; do ${what}; done) & read -r _; exit 3`, options);
        let lines = 0;
        for await (const chunk of running.stdout!) {
          lines += chunk.length;
          // The command exits only now that the other process writes.
          running.stdin!.end();
          await new Promise((resolve) => setImmediate(resolve));
        }
        expect((await running.result).exitCode).toBe(3);
        expect(lines).toBeGreaterThan(0);
      },
    );

    if (reach !== "command") {
      test("leftovers of a normal exit are killed and counted", async () => {
        const mark = createMark();
        const end = await leaveBehind("background", mark);
        expect(end).toMatchObject({ exitCode: 0, error: null, leftovers: 1, out: "ready\n" });
        expect(findSurvivors(mark)).toEqual([]);
      });

      test("kept leftovers stay alive, at level group", async () => {
        const mark = createMark();
        const end = await leaveBehind("background", mark, keepLeftovers);
        expect(end).toMatchObject({ exitCode: 0, leftovers: 0, isolation: "group" });
        expect(findSurvivors(mark)).toHaveLength(1);
        endAll(findSurvivors(mark));
        expect(await waitUntil(() => findSurvivors(mark).length === 0, 60_000)).toBe(true);
      });
    }

    const escapes = { command: [], group: ["background", "nohup", "ignored-term"], everything: allEscapes }[reach];
    test.each(escapes)("nothing is alive when a stopped %s has its result", async (script) => {
      const [cancelled, timedOut] = [createMark(), createMark()];
      const running = escape(script, cancelled, "stay", { graceMs: 100 });
      await firstChunk(running.stdout!);
      const [, other] = await Promise.all([
        running.kill("user").then(() => expect(findSurvivors(cancelled)).toEqual([])),
        escape(script, timedOut, "stay", { graceMs: 100 }, { timeoutMs: 200 }).result,
      ]);
      expect(findSurvivors(timedOut)).toEqual([]);
      expect(other.stopped).toBe("timeout");
    });
  });
}

export const allEscapes = [
  "background",
  "setsid",
  "double-fork",
  "pid-hopping",
  "nohup",
  "ignored-term",
  "held-stdout",
  "cleared-env",
];

async function finish(running: RunningProcess): Promise<ProcessEnd & { out: string; err: string }> {
  const [out, err, end] = await Promise.all([readText(running.stdout), readText(running.stderr), running.result]);
  return { ...end, out, err };
}

async function readText(stream: Readable | null): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream ?? []) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function firstChunk(stream: Readable): Promise<unknown> {
  return new Promise((resolve) => stream.once("readable", resolve));
}

function endAll(pids: readonly number[]): void {
  for (const pid of pids) process.kill(pid, "SIGKILL");
}
