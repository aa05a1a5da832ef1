import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openTerminal, terminalTest } from "./at-terminal.ts";
import { bin, drover, createDirectory } from "./drover.ts";
import { encodeFiles, writeScribe } from "./scribe.ts";
import { startRunner, startCoordinator } from "./coordinator-process.ts";

const toPrompt = (what: object): string[] => ["--prompt", JSON.stringify(what)];

let serving: ReturnType<typeof startServing> | undefined;
/** Shared by all tests of this file, so earlier sessions remain. */
const getServing = () => (serving ??= startServing());

/** A coordinator, and a runner that offers `scribe`, `stiff` and the procedural agent `plain`. */
async function startServing() {
  const cwd = createDirectory(undefined, "file");
  writeScribe(cwd);
  mkdirSync(join(cwd, "agents-plain"));
  writeFileSync(join(cwd, "agents-plain", "plain.yaml"), "name: plain\ncommand: echo plain\n");
  const plain = { type: "procedural", agents_dir: "./agents-plain" };
  writeFileSync(join(cwd, "profiles", "plain.json"), JSON.stringify(plain));
  const coordinator = await startCoordinator(cwd, {}, "file");
  await startRunner(
    coordinator,
    cwd,
    "one",
    ["scribe", "stiff", "plain"].flatMap((name) => ["-x", `./profiles/${name}.json`]),
    "file",
  );
  const env = {
    DROVER_API_URL: coordinator.url,
    DROVER_API_KEY: coordinator.token,
    DROVER_STATE_DIR: join(cwd, "none"),
  };
  const run = (...args: string[]) => drover(args, { cwd, env });
  /** Runs to the end with --json and returns the run. */
  const json = async (...args: string[]) => JSON.parse((await run(...args, "--json")).stdout);
  return { cwd, env, run, json };
}

describe("sessions", () => {
  it("are listed, shown with their runs, resumed and forked", async () => {
    const { run, json } = await getServing();
    const first = await json("run", "scribe", ...toPrompt({ remember: "one" }));
    expect(first).toMatchObject({ status: "completed", mode: "start", result_text: "one" });
    const id = first.session_id as string;

    const resumed = await run("sessions", "resume", id, ...toPrompt({ remember: "two" }));
    expect(resumed, resumed.stderr).toMatchObject({ code: 0, stdout: "one > two\n" });
    const forked = await json("sessions", "fork", id.slice(0, 20), ...toPrompt({ remember: "other" }));
    expect(forked).toMatchObject({ mode: "fork", forked_from: id, result_text: "one > two > other" });
    expect(forked.session_id).not.toBe(id);
    const thirdRun = await json("sessions", "resume", id, ...toPrompt({ remember: "three" }));
    expect(thirdRun).toMatchObject({ mode: "resume", session_id: id, result_text: "one > two > three" });

    const listed = (await run("sessions", "list", "--agent", "scribe")).stdout.trim().split("\n");
    const sessionIds = listed
      .map((line) => line.split("\t").slice(0, 3))
      .filter(([of]) => [id, forked.session_id].includes(of));
    expect(sessionIds).toEqual([
      [forked.session_id, "scribe", "1"],
      [id, "scribe", "3"],
    ]);
    const [newest] = (await run("sessions", "list", "--limit", "1", "--json")).stdout.split("\n");
    expect(JSON.parse(newest!)).toMatchObject({ session_id: forked.session_id, forked_from: id });
    expect((await run("sessions", "list", "--limit", "1")).stderr).toContain("More: drover sessions list --limit 1");

    const shown = await run("sessions", "show", id);
    expect(shown.stderr).toContain(`Continue: drover sessions resume ${id}`);
    const rows = shown.stdout.split("\n\n")[1]!.trim().split("\n");
    expect(rows.map((row) => row.split("\t"))).toEqual([
      [thirdRun.run_id, "resume", "completed", expect.any(String)],
      [expect.any(String), "resume", "completed", first.run_id],
      [first.run_id, "start", "completed", "-"],
    ]);
    const fork = JSON.parse((await run("sessions", "show", forked.session_id, "--json")).stdout);
    expect(fork).toMatchObject({ forked_from: id, run_count: 1, versions: [{ run_id: forked.run_id, mode: "fork" }] });
    expect(fork.versions[0].parent).toBe(
      JSON.parse((await run("sessions", "show", id, "--json")).stdout).versions[1].run_id,
    );
    expect((await run("runs", "show", forked.run_id)).stdout).toMatch(new RegExp(`forked from +${id}`));
  });

  it("are listed with their last run and whether they can be resumed or forked", async () => {
    const { run, json } = await getServing();
    const newest = async (agent: string) => {
      const { stdout } = await run("sessions", "list", "--agent", agent, "--limit", "1", "--json", "--quiet");
      return JSON.parse(stdout);
    };
    const scribe = await json("run", "scribe", ...toPrompt({ remember: "one" }));
    const last_run = { run_id: scribe.run_id, status: "completed", reason: null };
    expect(await newest("scribe")).toMatchObject({
      session_id: scribe.session_id,
      last_run,
      can_resume: true,
      can_fork: true,
      obstacle: null,
    });
    await json("run", "stiff", ...toPrompt({ remember: "one" }));
    expect(await newest("stiff")).toMatchObject({ can_resume: true, can_fork: false, obstacle: null });
    await json("run", "plain");
    expect(await newest("plain")).toMatchObject({
      can_resume: false,
      can_fork: false,
      obstacle: expect.stringMatching(/^procedural/),
    });
    const active = (await run("run", "scribe", ...toPrompt({ wait: true }), "--detach", "--quiet")).stdout.trim();
    await expect
      .poll(() => newest("scribe"), { interval: 500 })
      .toMatchObject({
        last_run: { run_id: active, status: "running" },
        can_resume: true,
        obstacle: "waits for its running run",
      });
    await run("runs", "stop", active);
    await run("runs", "wait", active);
    const [line] = (await run("sessions", "list", "--agent", "stiff")).stdout.split("\n");
    expect(line!.split("\t").slice(1, 6)).toEqual(["stiff", "1", "completed", expect.stringMatching(/Z$/), "resume"]);
  });

  it("are listed as expired after the agent's session.timeout, also without a coordinator", async () => {
    const cwd = createDirectory();
    writeScribe(cwd);
    const briefAgent = "name: brief\ntype: autonomous\nexecutor: scribe\nsession: { timeout: 1 }\n";
    writeFileSync(join(cwd, "agents-scribe", "brief.yaml"), briefAgent);
    const env = { DROVER_STATE_DIR: join(cwd, "state") };
    const run = (...args: string[]) => drover(args, { cwd, env });
    await run("run", "scribe", ...toPrompt({ remember: "one" }));
    await run("run", "brief", ...toPrompt({ remember: "one" }));
    await run("run", "echo", "--message", "hello");
    const list = async () => {
      const { stdout } = await run("sessions", "list", "--json");
      const sessions = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      return Object.fromEntries(sessions.map((session) => [session.agent_name, session]));
    };
    await expect.poll(list, { interval: 500 }).toMatchObject({
      scribe: { can_resume: true, can_fork: true, obstacle: null },
      brief: { can_resume: false, can_fork: false, obstacle: "expired: not used for 1 s (session.timeout)" },
      echo: { can_resume: false, can_fork: false, obstacle: "procedural: a command has no conversation" },
    });
    const { brief: expired } = await list();
    const resumed = await run("sessions", "resume", expired.session_id, ...toPrompt({}));
    expect(resumed.stderr).toContain("DROVER-SUB-006");
    rmSync(join(cwd, "agents-scribe", "scribe.yaml"));
    expect((await list())["scribe"]).toMatchObject({
      can_resume: false,
      obstacle: "the agent scribe does not exist",
    });
  });

  terminalTest("are listed with short ids and coloured states on a terminal", async () => {
    const { cwd, env, json } = await getServing();
    const { session_id } = await json("run", "plain");
    const list = openTerminal(["sessions", "list", "--agent", "plain", "--limit", "1"], { cwd, env, columns: 160 });
    expect(await list.exitCode).toBe(0);
    expect(list.shown()).toContain(`\u001b[36m${session_id.slice(-8)}\u001b[39m`);
    expect(list.shown()).toContain("\u001b[32m✓ completed\u001b[39m");
    expect(list.shown()).toContain("no: procedural");
  });

  it("are refused with a reason if they cannot be resumed", async () => {
    const { run, json } = await getServing();
    const plain = await json("run", "plain");
    const procedural = await run("sessions", "resume", plain.session_id, "--prompt", "more");
    expect(procedural.code).not.toBe(0);
    expect(procedural.stderr).toContain("Procedural agents cannot resume or fork a session.");
    expect(procedural.stderr).toContain("DROVER-SUB-002");

    const stiff = await json("run", "stiff", ...toPrompt({ remember: "one" }));
    const fork = await run("sessions", "fork", stiff.session_id, ...toPrompt({}));
    expect(fork.code).toBe(1);
    expect(fork.stderr).toContain("cannot fork a session");
    const withoutPrompt = await run("sessions", "resume", stiff.session_id);
    expect(withoutPrompt).toMatchObject({ code: 2 });
    expect(withoutPrompt.stderr).toContain("--prompt");
    const unknown = await run("sessions", "resume", "ffffffff", "--prompt", "x");
    expect(unknown).toMatchObject({ code: 2 });
    expect(unknown.stderr).toContain("drover sessions list");
    expect((await run("sessions", "resume")).stderr).toContain("Specify the session");
    expect((await run("sessions", "resum", "x")).stderr).toContain("drover sessions resume");
  });

  it("are deleted only without active runs, and keep their runs", async () => {
    const { run } = await getServing();
    const id = (await run("run", "scribe", ...toPrompt({ wait: true }), "--detach", "--quiet")).stdout.trim();
    const getRun = async () => JSON.parse((await run("runs", "show", id, "--json")).stdout);
    await expect.poll(async () => (await getRun()).status, { interval: 500 }).toBe("running");
    const { session_id } = await getRun();
    const activeDeletion = await run("sessions", "delete", session_id);
    expect(activeDeletion.code).not.toBe(0);
    expect(activeDeletion.stderr).toContain("DROVER-API-030");
    expect((await run("sessions", "show", session_id)).code).toBe(0);

    await run("runs", "stop", id);
    await expect.poll(async () => (await getRun()).status, { interval: 500 }).toBe("cancelled");
    const deleted = await run("sessions", "delete", session_id);
    expect(deleted, deleted.stderr).toMatchObject({ code: 0, stdout: `${session_id}\n` });
    expect((await run("sessions", "show", session_id)).stderr).toContain("Unknown session");
    expect((await run("sessions", "resume", session_id, ...toPrompt({}))).code).toBe(2);
    expect((await getRun()).session_id).toBe(session_id);
  });

  it("need no permanent coordinator, and continue in the directory where they started", async () => {
    const cwd = createDirectory();
    writeScribe(cwd);
    mkdirSync(join(cwd, "sub"));
    const env = { DROVER_STATE_DIR: join(cwd, "state") };
    const run = (...args: string[]) => drover(args, { cwd, env });
    expect((await run("run", "scribe", ...toPrompt({ remember: "one" }))).stdout).toBe("one\n");
    const [id = ""] = (await run("sessions", "list")).stdout.split("\t");
    const continueSession = (mode: string, from: string, word: string) =>
      drover(["sessions", mode, id, ...toPrompt({ remember: word })], { cwd: from, env });
    const below = await continueSession("resume", join(cwd, "sub"), "two");
    expect(below, below.stderr).toMatchObject({ code: 0, stdout: "one > two\n" });
    const forkElsewhere = await continueSession("fork", createDirectory(), "three");
    expect(forkElsewhere, forkElsewhere.stderr).toMatchObject({ code: 0, stdout: "one > two > three\n" });
    expect(JSON.parse((await run("sessions", "show", id, "--json")).stdout)).toMatchObject({ run_count: 2 });
    expect((await run("sessions", "delete", id, "--json")).stdout).toBe(`{"session_id":"${id}","deleted":true}\n`);
    const [sessionId = ""] = (await run("sessions", "list")).stdout.split("\t");
    expect([sessionId === id, sessionId]).toEqual([false, expect.stringMatching(/^[0-9a-f-]{36}$/)]);
    const unknown = await drover(["sessions", "resume", id, "--prompt", "x"], { cwd: createDirectory(), env });
    expect(unknown).toMatchObject({ code: 2 });
  });
});

describe("the output of run for an autonomous agent", () => {
  it("is its answer once on stdout, and the next steps on stderr", async () => {
    const { run } = await getServing();
    const answer = await run("run", "scribe", ...toPrompt({ say: "I think", tool: "Bash", text: "The answer" }));
    expect(answer).toMatchObject({ code: 0, stdout: "The answer\n", stderr: "" });
    const same = await run("run", "scribe", ...toPrompt({ output: "line\nThe answer\n", text: "The answer" }));
    expect(same.stdout).toBe("line\nThe answer\n");
    const otherAnswer = await run("run", "scribe", ...toPrompt({ output: "log\n", text: "The answer" }));
    expect(otherAnswer.stdout).toBe("log\nThe answer\n");
    const files = encodeFiles({ "a.txt": "x" });
    expect((await run("run", "scribe", ...toPrompt({ files, text: "ok" }))).stderr).toMatch(
      /^1 file: drover runs files \S+\n$/,
    );
    expect((await run("run", "scribe", "--quiet", ...toPrompt({ files, text: "ok" }))).stderr).toBe("");
    expect((await run("run", "plain")).stdout).toBe("plain\n");
  });

  // util-linux's `script` provides a real terminal
  it.runIf(process.platform === "linux" && spawnSync("script", ["--version"]).status === 0)(
    "appears at a terminal while it is written, and nothing appears twice",
    async () => {
      const { cwd, env } = await getServing();
      const prompt = { pieces: ["I am ", "think", "ing"], say: "I am thinking", tool: "Bash", text: "I am thinking" };
      const line = 'exec "$NODE" "$BIN" run scribe --prompt "$PROMPT"';
      const { stdout, status } = spawnSync("script", ["-qec", line, "/dev/null"], {
        cwd,
        env: {
          ...process.env,
          ...env,
          SHELL: "/bin/sh",
          NODE: process.execPath,
          BIN: bin,
          PROMPT: JSON.stringify(prompt),
        },
        encoding: "utf8",
      });
      expect(status, stdout).toBe(0);
      expect(stdout.split("I am thinking"), stdout).toHaveLength(2);
      expect(stdout).toContain('> Bash {"command":"ls"}');
      expect(stdout).toContain("< done a.txt");
      expect(stdout).toMatch(/Continue: drover sessions resume \S+/);
    },
  );
});
