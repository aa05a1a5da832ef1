import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { drover, exists, createDirectory } from "./drover.ts";
import { createProject } from "./create-project.ts";

describe("bad input on the command line", () => {
  const cases: [what: string, args: string[], code: number, stable: string, says: string][] = [
    ["an empty command", ["exec", ""], 2, "DROVER-USE-002", "empty"],
    ["a blank command", ["exec", "   "], 2, "DROVER-USE-002", "empty"],
    ["no command", ["exec"], 2, "DROVER-USE-002", "empty"],
    ["nothing after --", ["exec", "--"], 2, "DROVER-USE-002", "empty"],
    ["several words without --", ["exec", "npm", "test"], 2, "DROVER-USE-001", '"npm test"'],
    ["a missing directory", ["exec", "true", "--cwd", "nowhere"], 2, "DROVER-USE-003", "nowhere"],
    ["a directory that is a file", ["exec", "true", "--cwd", "/etc/passwd"], 2, "DROVER-USE-004", "/etc/passwd"],
    ["a negative timeout", ["exec", "true", "--timeout", "-1"], 2, "DROVER-USE-005", "-1"],
    ["a timeout that is not a number", ["exec", "true", "--timeout", "soon"], 2, "DROVER-USE-005", "soon"],
    ["a timeout of NaN", ["exec", "true", "--timeout", "NaN"], 2, "DROVER-USE-005", "NaN"],
    ["a timeout of 0", ["exec", "true", "--timeout", "0"], 2, "DROVER-USE-005", "0"],
    ["an endless timeout", ["exec", "true", "--timeout", "Infinity"], 2, "DROVER-USE-005", "Infinity"],
    ["an unknown option", ["exec", "true", "--timout", "1"], 2, "DROVER-USE-007", "--timeout"],
    ["an option without its value", ["exec", "true", "--timeout"], 2, "DROVER-USE-001", "--timeout"],
    ["an option given twice", ["exec", "true", "--timeout", "1", "--timeout", "2"], 2, "DROVER-USE-001", "twice"],
    ["a variable without a value", ["exec", "true", "--env", "FOO"], 2, "DROVER-USE-009", "FOO"],
    ["a variable without a name", ["exec", "true", "--env", "=x"], 2, "DROVER-USE-009", "=x"],
    ["an unknown limit", ["exec", "true", "--limit", "luck=1"], 2, "DROVER-USE-010", "luck"],
    ["a limit with two values", ["exec", "true", "--limit", "cpu=1=2"], 2, "DROVER-USE-010", "cpu=1=2"],
    ["more output than is kept", ["exec", "true", "--max-output-kb", "65537"], 2, "DROVER-USE-001", "65536"],
    ["an unknown isolation level", ["exec", "true", "--isolation", "total"], 2, "DROVER-USE-001", "total"],
    ["an unknown command", ["exce", "true"], 2, "DROVER-USE-007", "exec"],
    ["the name of a property of every object", ["constructor"], 2, "DROVER-USE-007", "constructor"],
    ["a prototype", ["__proto__"], 2, "DROVER-USE-007", "__proto__"],
    ["help on an unknown command", ["help", "exce"], 2, "DROVER-USE-007", "exec"],
    ["an extra argument", ["runs", "list", "foo"], 2, "DROVER-USE-001", "foo"],
    ["an extra argument after --", ["doctor", "--", "foo"], 2, "DROVER-USE-001", "foo"],
    ["a head without --head", ["audit", "verify", "412:9f"], 2, "DROVER-USE-001", "--head"],
    ["two arguments instead of one", ["runs", "show", "00000000", "foo"], 2, "DROVER-USE-001", "foo"],
    ["a missing argument", ["backup"], 2, "DROVER-USE-001", "FILE"],
    ["an unknown run", ["runs", "show", "00000000"], 2, "DROVER-USE-008", "00000000"],
    ["a search without a word", ["runs", "list", "--search", "***"], 2, "DROVER-USE-001", "no words to search for"],
    ["a status that does not exist", ["runs", "list", "--status", "done"], 2, "DROVER-USE-001", "completed"],
  ];

  it.each(cases)("%s", async (_what, args, code, errorCode, expected) => {
    const { state, run } = createProject();
    if (args[0] === "runs") await run("exec", "true");
    const commandResult = await run(...args);
    expect(commandResult.code).toBe(code);
    expect(commandResult.stderr).toContain(errorCode);
    expect(commandResult.stderr).toContain(expected);
    expect(commandResult.stderr).not.toMatch(/\n\s+at /);
    expect(commandResult.stdout).toBe("");
    // The command is refused before anything is written: there is no run and no state directory.
    if (args[0] !== "runs") expect(exists(state)).toBe(false);
  });

  it("reports the same error as JSON with --json", async () => {
    const { run } = createProject();
    const { code, stdout } = await run("exec", "", "--json");
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code: "DROVER-USE-002", message: expect.any(String), next: expect.any(String) },
    });
  });

  it("exits with 126 for a file that is not executable", async () => {
    const { cwd, run } = createProject();
    writeFileSync(join(cwd, "script"), "echo hi\n");
    const { code, stderr } = await run("exec", "./script");
    expect(code).toBe(126);
    expect(stderr).toContain("DROVER-EXE-005");
    expect(stderr).toContain("script");
  });

  it("exits with 126 for an argument list that is too long", async () => {
    const { cwd, run } = createProject();
    writeFileSync(join(cwd, "many.mjs"), manyArguments);
    const { code, stdout } = await run("exec", "--", process.execPath, "many.mjs");
    expect(code).toBe(0);
    expect(stdout).toContain("DROVER-EXE-006");
  });
});

/** The kernel would not let a shell pass this many arguments to drover, so a program passes them to the library. */
const manyArguments = `
import { execute } from ${JSON.stringify(new URL("../../dist/index.mjs", import.meta.url).href)};
const result = await execute({ executable: "true", arguments: ["x".repeat(200_000)] }, { capture: { mode: "both", maxBytes: 1024, onLimit: "truncate" } });
console.log(result.error.code);
`;

describe("help on the command line", () => {
  it("`help COMMAND` equals --help, and describes every option", async () => {
    for (const command of [["exec"], ["runs", "list"]]) {
      const { code, stdout } = await drover(["help", ...command]);
      expect(code).toBe(0);
      expect(stdout).toBe((await drover([...command, "--help"])).stdout);
      for (const line of stdout.split("\n").filter((outputLine) => /^  (-\w, )?--/.test(outputLine)))
        expect(line).toMatch(/^  (-\w, )?--[\w-]+( [A-Z=]+)?\s{2,}\S/);
    }
  });

  it("a command group lists its commands: on stdout for --help, on stderr otherwise", async () => {
    const groups = ["runs", "sessions", "agents", "runners", "tokens", "audit"];
    const results = await Promise.all(groups.map((group) => drover([group, "--help"])));
    for (const [index, { code, stdout }] of results.entries()) {
      expect(code).toBe(0);
      expect(stdout.match(new RegExp(`^  drover ${groups[index]} \\w+  +\\S`, "gm"))?.length).toBeGreaterThan(1);
    }
    expect((await drover(["help", "runs"])).stdout).toBe(results[0]!.stdout);
    expect(await drover(["runs"])).toMatchObject({ code: 2, stdout: "", stderr: results[0]!.stdout });
    expect(await drover(["runs", "bogus"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Unknown command runs bogus"),
    });
  });

  it("agents check counts the files it read and names the directories it skipped", async () => {
    const cwd = createDirectory();
    mkdirSync(join(cwd, "agents", "below"), { recursive: true });
    writeFileSync(join(cwd, "agents", "a.yaml"), "name: a\ncommand: ls\n");
    writeFileSync(join(cwd, "agents", "below", "b.yaml"), "nonsense: true\n");
    const { code, stdout, stderr } = await drover(["agents", "check", "agents"], { cwd });
    expect({ code, stdout }).toEqual({ code: 0, stdout: "ok a\n" });
    expect(stderr).toContain(`Skipped ${join(cwd, "agents", "below")}`);
    expect(stderr).toContain("Checked 1 file.\n");
  });

  it("agents check warns about programs that cannot be run", async () => {
    const cwd = createDirectory();
    mkdirSync(join(cwd, "agents"));
    mkdirSync(join(cwd, "scripts"));
    writeFileSync(join(cwd, "scripts", "price.py"), "");
    writeFileSync(join(cwd, "agents", "price.yaml"), "name: price\ncommand: scripts/price.py --all\n");
    writeFileSync(join(cwd, "agents", "lost.yaml"), "name: lost\ncommand: scripts/lost.py\n");
    writeFileSync(join(cwd, "agents", "list.yaml"), "name: list\ncommand: ls\n");
    const { code, stdout, stderr } = await drover(["agents", "check"], { cwd });
    expect({ code, stdout }).toEqual({ code: 0, stdout: "ok list\nok lost\nok price\n" });
    expect(stderr.split("\n").filter((line) => line.includes("warning"))).toEqual([
      "drover: warning: lost: scripts/lost.py does not exist",
      "drover: warning: price: scripts/price.py is not executable (chmod +x scripts/price.py)",
    ]);
  });

  it("refuses to retry a run of exec, and prints the command that repeats it", async () => {
    const { run } = createProject();
    await run("exec", "--env", "A=1", "--", "printf", "%s", "a b");
    const [{ run_id }] = (await run("runs", "list", "--json")).stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const { code, stderr } = await run("runs", "retry", run_id.slice(0, -4));
    expect(code).toBe(2);
    expect(stderr).toMatch(/drover exec --cwd \S+ --env A=\.\.\. -- printf %s 'a b'\n/);
  });

  it("the hint for the next page repeats the filters", async () => {
    const { run } = createProject();
    for (const _ of [1, 2]) await run("exec", "false", "--task-id", "it's one");
    const question = ["--status", "failed", "--limit", "1", "--task-id", "it's one"];
    const { stderr } = await run("runs", "list", ...question);
    expect(stderr).toMatch(
      /^More: drover runs list --status failed --limit 1 --task-id 'it'\\''s one' --cursor [\w=-]+\n$/,
    );
  });

  it("every command accepts --no-input", async () => {
    const { run } = createProject();
    expect(await run("exec", "--no-input", "echo made")).toMatchObject({ code: 0, stdout: "made\n" });
    expect((await run("runs", "list", "--no-input")).code).toBe(0);
  });
});

describe("output that cannot be written", () => {
  const fullDevice = (redirect: string) => ["sh", "-c", `exec "$@" ${redirect}`, "sh"];
  const cases: [what: string, args: string[], redirect: string, code: number, says: string][] = [
    ["a result", ["doctor", "--json"], ">/dev/full", 125, "ENOSPC"],
    ["the result of a command", ["exec", "true", "--json"], ">/dev/full", 125, "ENOSPC"],
    ["help", ["exec", "--help"], ">/dev/full", 125, "ENOSPC"],
    ["the overview", ["--help"], ">/dev/full", 125, "ENOSPC"],
    ["the version", ["--version"], ">/dev/full", 125, "ENOSPC"],
    ["an error as JSON", ["exec", "", "--json"], ">/dev/full", 2, "DROVER-USE-002"],
    ["an error", ["exec", ""], "2>/dev/full", 2, ""],
    ["an unknown command", ["exce"], "2>/dev/full", 2, ""],
    ["both", ["doctor", "--json"], ">/dev/full 2>&1", 125, ""],
  ];

  it.each(cases)("%s", async (_what, args, redirect, code, expected) => {
    const cwd = createDirectory();
    const commandResult = await drover(args, {
      cwd,
      env: { DROVER_STATE_DIR: join(cwd, "state") },
      commandPrefix: fullDevice(redirect),
    });
    expect(commandResult.code).toBe(code);
    expect(commandResult.stderr).toContain(expected);
    expect(commandResult.stderr).not.toMatch(/\n\s+at /);
  });
});

describe("a working directory that no longer exists", () => {
  it.each([[["exec", "true"]], [["runs", "list"]]])("%j", async (args) => {
    const cwd = createDirectory();
    const removedDirectory = join(cwd, "gone");
    mkdirSync(removedDirectory);
    const commandPrefix = ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh"];
    const { code, stderr } = await drover(args, {
      cwd: removedDirectory,
      env: { DROVER_STATE_DIR: join(cwd, "state") },
      commandPrefix,
    });
    expect(code).toBe(2);
    expect(stderr).toContain("DROVER-USE-003");
  });
});
