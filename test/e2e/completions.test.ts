import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { bin, drover, exists, createDirectory, getTestHome, trusted } from "./drover.ts";
import { runToEnd, startRunner, startCoordinator, type CoordinatorProcess } from "./coordinator-process.ts";

/** A time limit long enough for a slow machine. By default a completion gives up after a second. */
const patientEnv = { DROVER_COMPLETE_MS: "120000" };

const hasShell = (shell: string): boolean => spawnSync(shell, ["-c", "exit 0"]).status === 0;

/** Runs a shell script with `drover` on its PATH. */
function runShell(shell: string, args: string[], cwd: string, env: Record<string, string> = {}): Promise<string> {
  const path = createDirectory();
  symlinkSync(bin, join(path, "drover"));
  const child = spawn(shell, args, {
    cwd,
    env: {
      PATH: `${path}:${process.env["PATH"]}`,
      HOME: getTestHome(),
      DROVER_TRUST: trusted,
      TERM: "dumb",
      ...patientEnv,
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (output += chunk.toString("utf8")));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => resolve(output));
  });
}

/** Prints what bash would offer for a line. `words` is the line as bash splits it. */
const createBashProbe = (line: string, words: readonly string[]): string =>
  [
    "source <(drover completions bash)",
    `COMP_LINE='${line}' COMP_POINT=${line.length} COMP_CWORD=${words.length - 1}`,
    `COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")})`,
    "_drover",
    `printf '%s\\n' "\${COMPREPLY[@]}"`,
  ].join("\n");

const completeInBash = async (line: string, words: string[], cwd: string, env: Record<string, string>) =>
  (await runShell("bash", ["--norc", "-c", createBashProbe(line, words)], cwd, env)).trimEnd().split("\n");

describe("drover completions", () => {
  it("prints a script for each shell, which asks drover __complete", async () => {
    const [bash, zsh, fish, other] = await Promise.all(
      ["bash", "zsh", "fish", "tcsh"].map((shell) => drover(["completions", shell])),
    );
    expect(bash!.stdout).toContain("complete -F _drover drover");
    expect(zsh!.stdout).toMatch(/^#compdef drover\n/);
    expect(zsh!.stdout).toContain("compdef _drover drover");
    expect(fish!.stdout).toContain("complete -c drover -f -k -a '(__drover_complete)'");
    for (const script of [bash, zsh, fish]) {
      expect(script).toMatchObject({ code: 0, stderr: "" });
      expect(script!.stdout).toContain(" __complete ");
      expect(script!.stdout).toContain(":files");
    }
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining("tcsh is not one of bash, zsh, fish.") });
  });

  describe("with a coordinator", () => {
    let cwd: string;
    let coordinator: CoordinatorProcess;
    let env: Record<string, string>;
    let runId: string;
    beforeAll(async () => {
      cwd = createDirectory(undefined, "file");
      mkdirSync(join(cwd, "agents"));
      const paint = {
        name: "paint",
        command: "true",
        parameters_schema: {
          type: "object",
          properties: { colour: { enum: ["red", "two tone"], description: "the paint" }, dry: { type: "boolean" } },
          required: ["colour"],
        },
        schedules: [{ name: "nightly", cron: "0 3 * * *", parameters: { colour: "red" } }],
      };
      writeFileSync(join(cwd, "agents", "paint.json"), JSON.stringify(paint));
      coordinator = await startCoordinator(cwd, {}, "file");
      await startRunner(coordinator, cwd, "one", ["-x", "procedural"], "file");
      env = { DROVER_STATE_DIR: coordinator.state, ...patientEnv };
      runId = (await runToEnd(coordinator, { agent_name: "paint", parameters: { colour: "red" } })).run_id;
    });
    const complete = async (...words: string[]): Promise<string[]> => {
      const { code, stdout, stderr } = await drover(["__complete", ...words], { cwd, env });
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      return stdout.split("\n").slice(0, -1);
    };

    it("completes commands, subcommands, the words of help, and options", async () => {
      expect(await complete("sta")).toEqual([
        "status\tshow the coordinator, the runners and the latest runs",
        "state\tshow where Drover keeps its state",
      ]);
      expect(await complete("sessions", "f")).toEqual(["fork\tcontinue a copy of a session"]);
      expect(await complete("help", "sessions", "f")).toEqual(["fork\tcontinue a copy of a session"]);
      expect(await complete("usage", "--b")).toEqual([expect.stringMatching(/^--by\tgroup by/)]);
      expect(await complete("usage", "--by", "d")).toEqual(["day"]);
      expect(await complete("usage", "--by=")).toEqual(["--by=agent", "--by=day", "--by=session"]);
      expect(await complete("usage", "--by", "day", "--b")).toEqual([]);
      expect(await complete("completions", "")).toEqual(["bash", "zsh", "fish"]);
    });

    it("completes the statuses of `runs list`, also after a comma", async () => {
      expect(await complete("runs", "list", "--status", "p")).toEqual(["pending", "parked"]);
      expect(await complete("runs", "list", "--status", "failed,c")).toEqual([
        "failed,claimed",
        "failed,completed",
        "failed,cancelled",
      ]);
      expect(await complete("runs", "list", "--status=failed,fa")).toEqual([]);
      expect(await complete("runs", "list", "--status=failed,run")).toEqual(["--status=failed,running"]);
      const words = ["drover", "runs", "list", "--status", "=", "failed,st"];
      expect(await completeInBash("drover runs list --status=failed,st", words, cwd, env)).toEqual(["failed,stopping"]);
    });

    it("completes agents, their parameters and the values of an enum", async () => {
      expect(await complete("run", "pa")).toEqual(["paint"]);
      expect(await complete("runs", "list", "--agent", "pa")).toEqual(["paint"]);
      expect((await complete("run", "paint", "--")).slice(0, 2)).toEqual([
        "--colour\trequired: the paint",
        "--dry\tparameter",
      ]);
      expect(await complete("run", "paint", "--colour", "")).toEqual(["red", "two tone"]);
      expect(await complete("run", "paint", "--dry=")).toEqual(["--dry=true", "--dry=false"]);
      expect(await complete("run", "paint", "--colour", "red", "--col")).toEqual([]);
    });

    it("completes runs and sessions with their agent and status, schedules and runners", async () => {
      expect(await complete("runs", "show", runId.slice(0, 8))).toEqual([
        expect.stringMatching(new RegExp(`^${runId}\tpaint, completed, \\d+\\w ago$`)),
      ]);
      expect(await complete("sessions", "show", "")).toEqual([expect.stringMatching(/^\S+\tpaint, 1 run, /)]);
      expect(await complete("schedules", "show", "")).toEqual(["nightly\tpaint"]);
      expect(await complete("runners", "drain", "")).toEqual([expect.stringMatching(/^\S+\tprocedural, online$/)]);
    });

    it("leaves files and the words of a command to the shell", async () => {
      expect(await complete("exec", "l")).toEqual([":files"]);
      expect(await complete("exec", "--", "ls", "-")).toEqual([":files"]);
      expect(await complete("up", "--agents", "")).toEqual([":files"]);
    });

    it("works in bash, also for words that bash splits", async () => {
      expect(await completeInBash("drover sessions f", ["drover", "sessions", "f"], cwd, env)).toEqual(["fork"]);
      expect(await completeInBash("drover usage --by=", ["drover", "usage", "--by", "="], cwd, env)).toEqual([
        "agent",
        "day",
        "session",
      ]);
      expect(await completeInBash("drover usage --by=d", ["drover", "usage", "--by", "=", "d"], cwd, env)).toEqual([
        "day",
      ]);
      const line = "drover run paint --colour ";
      expect(await completeInBash(line, ["drover", "run", "paint", "--colour", ""], cwd, env)).toEqual([
        "red",
        "two\\ tone",
      ]);
    });

    it("works in the other shells of this machine", async () => {
      if (hasShell("fish")) {
        const script =
          'drover completions fish | source; complete -C "drover run paint --col"; complete -C "drover run paint --colour "';
        expect(await runShell("fish", ["-c", script], cwd, env)).toBe("--colour\trequired: the paint\nred\ntwo tone\n");
      }
      if (hasShell("zsh"))
        expect(await runShell("zsh", ["-f", "-c", zshProbe], cwd, env)).toContain("drover sessions fork --json");
    });
  });

  it("reads the local record without a coordinator, and starts or creates nothing", async () => {
    const cwd = createDirectory();
    const state = join(cwd, "state");
    const env = { DROVER_STATE_DIR: state, ...patientEnv };
    expect(await drover(["__complete", "runs", "show", ""], { cwd, env })).toMatchObject({ code: 0, stdout: "" });
    expect(exists(state)).toBe(false);
    await drover(["exec", "false"], { cwd, env });
    const { stdout, stderr } = await drover(["__complete", "runs", "show", ""], { cwd, env });
    expect(stdout).toMatch(/^\S{36}\texec, failed, \d+\w ago\n$/);
    expect(stderr).toBe("");
    const agents = await drover(["__complete", "run", "ech"], { cwd, env });
    expect(agents).toMatchObject({ stdout: "echo\tReturns its message as JSON\n", stderr: "" });
  });

  it("is silent and ends if the coordinator accepts the connection and never answers", async () => {
    const silentServer = createServer(() => undefined).listen(0, "127.0.0.1");
    await new Promise((resolve) => silentServer.once("listening", resolve));
    const address = silentServer.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const env = { DROVER_API_URL: `http://127.0.0.1:${port}`, DROVER_API_KEY: "drv_x", DROVER_COMPLETE_MS: "100" };
    const result = await drover(["__complete", "runs", "show", ""], { cwd: createDirectory(), env });
    expect(result).toMatchObject({ code: 0, stdout: "", stderr: "" });
    silentServer.close();
  });

  it("is silent if the configuration is broken or the command is unknown", async () => {
    const cwd = createDirectory();
    writeFileSync(join(cwd, "drover.yaml"), "nonsense: [");
    const broken = await drover(["__complete", "runs", "show", ""], { cwd, env: patientEnv });
    expect(broken).toMatchObject({ code: 0, stdout: "", stderr: "" });
    const unknown = await drover(["__complete", "nope", "--"], { cwd, env: patientEnv });
    expect(unknown).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });
});

/** Presses Tab twice in an interactive zsh: after a subcommand and after an option. */
const zshProbe = String.raw`
zmodload zsh/zpty
zpty terminal zsh -f -i
zpty -w terminal 'autoload -Uz compinit; compinit -u -d "$TMPPREFIX-dump"; eval "$(drover completions zsh)"; echo REA""DY'
zpty -r -m terminal output '*READY*' || exit 1
zpty -w -n terminal $'drover sessions fo\t'
zpty -r -m terminal output '*sessions fork *' || exit 1
zpty -w -n terminal $'--js\t'
zpty -r -m terminal output '*--json *' || exit 1
print -r -- "drover sessions fork --json" "$output"
zpty -d terminal
`;
