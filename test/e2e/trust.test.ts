import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { openTerminal } from "./at-terminal.ts";
import { drover, createDirectory, type CommandResult } from "./drover.ts";

let cwd: string;
let env: Record<string, string>;
beforeEach(() => {
  cwd = createDirectory();
  const home = createDirectory();
  // Nothing is trusted unless a test trusts it.
  env = { HOME: home, DROVER_TRUST: "", DROVER_STATE_DIR: join(home, "state") };
});
const writeProjectFile = (path: string, content: unknown): void => {
  mkdirSync(dirname(join(cwd, path)), { recursive: true });
  writeFileSync(join(cwd, path), typeof content === "string" ? content : JSON.stringify(content));
};
const run = (...args: string[]): Promise<CommandResult> => drover(args, { cwd, env });
const hasRun = (): boolean => existsSync(join(cwd, "it-ran"));
const line = (what: string): string =>
  `drover: ${cwd} is not trusted: ignored ${what}. Trust it with: drover trust ${cwd}\n`;

/** A module that leaves a file when it is loaded. */
const evilModule = (): string =>
  `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(join(cwd, "it-ran"))}, "");
   export default { create: () => ({ name: "a", can: {}, run: async () => ({ status: "completed", text: "" }) }) };`;

it("trust says that a directory with profiles but without drover.yaml shares the user's record", async () => {
  delete env["DROVER_STATE_DIR"];
  const note = "This directory is not a project (no drover.yaml, no git repository), so it shares your user's record.";
  expect((await run("trust")).stderr).not.toContain(note);
  writeProjectFile("profiles/a.json", { type: "procedural" });
  expect((await run("trust")).stderr).toContain(`drover: ${note} To make it a project: touch drover.yaml\n`);
  writeProjectFile("drover.yaml", "");
  expect((await run("trust")).stderr).not.toContain(note);
});

describe("profiles and agents of an untrusted directory", () => {
  it("never run, and one message says so", async () => {
    writeProjectFile("x/evil.mjs", evilModule());
    for (const name of ["a", "echo"]) writeProjectFile(`profiles/${name}.json`, { type: "a", module: "./x/evil.mjs" });
    const { code, stdout, stderr } = await run("run", "echo", "--message", "hi");
    expect([code, stdout, stderr]).toEqual([
      0,
      expect.stringContaining("hi"),
      expect.stringContaining(line("profiles/ (2)")),
    ]);
    expect(await run("run", "nosuch")).toMatchObject({ code: 2 });
    expect(hasRun()).toBe(false);
  });

  const shapes: [what: string, profile: unknown][] = [
    ["with a module by its absolute path", { type: "a", module: "/tmp/x.mjs" }],
    ["with a command", { type: "a", command: "touch it-ran" }],
    ["that takes the place of a bundled one", { type: "procedural", command: "touch it-ran" }],
    ["at fault", "{"],
    ["that is empty", ""],
    ["that is a bomb", `{${'"a":{'.repeat(5000)}`],
  ];
  it.each(shapes)("a profile %s does not break unrelated runs", async (_, profile) => {
    writeProjectFile("profiles/a.json", profile);
    writeProjectFile("profiles/procedural.json", profile);
    writeProjectFile("profiles/echo.json", profile);
    const { code, stdout } = await run("run", "echo", "--message", "hi");
    expect([code, stdout, hasRun()]).toEqual([0, expect.stringContaining("hi"), false]);
  });

  it("are not offered by name, by `agents list`, by `runner`, by a session or through a link", async () => {
    writeProjectFile("profiles/mine.json", { type: "procedural", agents_dir: "./agents" });
    writeProjectFile("agents/mine.json", { name: "mine", command: "touch it-ran" });
    expect(await run("run", "mine")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(line("profiles/ (1), agents/ (1)")),
    });
    expect((await run("agents", "list")).stdout).not.toContain("mine");
    expect((await run("runner", "-x", "mine")).stderr).toContain("DROVER-PRF-001");
    const otherDirectory = createDirectory();
    symlinkSync(join(cwd, "profiles"), join(otherDirectory, "profiles"));
    env["DROVER_TRUST"] = otherDirectory;
    const linked = await drover(["run", "mine"], { cwd: otherDirectory, env });
    expect(linked).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`drover trust ${join(cwd, "profiles")}\n`),
    });
    expect(hasRun()).toBe(false);
  });

  it("are used when they are named on the command line or trusted", async () => {
    writeProjectFile("profiles/mine.json", { type: "procedural", agents_dir: "./offers" });
    writeProjectFile("offers/mine.json", { name: "mine", command: "echo mine" });
    const runMine = (): Promise<CommandResult> => run("run", "mine", "--no-input");
    expect(await runMine()).toMatchObject({ code: 2 });
    expect(await run("trust")).toMatchObject({ code: 0, stderr: expect.stringContaining(`Trusted ${cwd}.`) });
    expect(await runMine()).toMatchObject({ code: 0, stdout: expect.stringContaining("mine") });
    expect((await run("trust", "list", "--json")).stdout).toContain(JSON.stringify(cwd));
    expect(await run("trust", "revoke", cwd)).toMatchObject({ code: 0 });
    expect(await runMine()).toMatchObject({ code: 2 });
    env["DROVER_TRUST"] = dirname(cwd);
    expect(await runMine()).toMatchObject({ code: 0 });
    // They can be inspected before they are trusted.
    env["DROVER_TRUST"] = "";
    expect(await run("agents", "check")).toMatchObject({ code: 0, stdout: "ok mine\n" });
  });

  it("cannot load packages from their node_modules", async () => {
    writeProjectFile("node_modules/@anthropic-ai/claude-agent-sdk/package.json", {
      name: "x",
      version: "1.0.0",
      main: "x.js",
    });
    writeProjectFile(
      "node_modules/@anthropic-ai/claude-agent-sdk/x.js",
      `require("fs").writeFileSync(${JSON.stringify(join(cwd, "it-ran"))}, "")`,
    );
    writeProjectFile("a.md", "# A\n\nYou do.\n");
    const words = ["agent-executor", "a.md", ".", "--provider", "claude-code", "--prompt", "x"];
    expect((await run(...words)).code).not.toBe(0);
    expect(hasRun()).toBe(false);
  });
});

describe("an untrusted drover.yaml", () => {
  it("cannot disable the audit or expose secrets", async () => {
    writeProjectFile("drover.yaml", "execution:\n  audit: { enabled: false }\n  environment: { allow: ['*'] }\n");
    env["MY_TOKEN"] = "s3cret-value";
    const { stderr, stdout } = await run("exec", "env");
    expect(stdout).not.toContain("MY_TOKEN");
    expect(stderr).toContain(
      line("execution.environment.allow of drover.yaml, execution.audit.enabled of drover.yaml"),
    );
    expect((await run("runs", "list")).stdout).toContain("env");
  });

  const widening: [key: string, text: string][] = [
    ["execution.default_timeout_seconds", "execution: { default_timeout_seconds: 9000 }"],
    ["execution.max_output_kb", "execution: { max_output_kb: 60000 }"],
    ["execution.use_shell", "execution: { use_shell: true }"],
    ["execution.environment.mode", "execution: { environment: { mode: merge } }"],
    ["execution.audit.retention_days", "execution: { audit: { retention_days: 0.001 } }"],
    ["files.max_file_mb", "files: { max_file_mb: 5000 }"],
    ["retention.runs_days", "retention: { runs_days: 0.001 }"],
    ["isolation", "isolation: none"],
    ["agents", "agents: ./x"],
    ["profiles", "profiles: /nowhere"],
    ["provider", "provider: openai"],
    ["public_urls", "public_urls: ['https://evil.example']"],
    ["webhooks.allow", "webhooks: { allow: ['10.0.0.0/8'] }"],
    ["agents_auto_accept", "agents_auto_accept: true"],
  ];
  it.each(widening)("ignores %s, and says so", async (key, text) => {
    writeProjectFile("drover.yaml", text);
    expect(await run("exec", "true")).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(line(`${key} of drover.yaml`)),
    });
  });

  it("may make settings stricter", async () => {
    writeProjectFile(
      "drover.yaml",
      "execution:\n  default_timeout_seconds: 1\n  environment: { deny: [MY_NAME] }\n  use_shell: false\n",
    );
    env["MY_NAME"] = "me";
    const { stdout, stderr } = await run("exec", "env");
    expect(stdout).not.toContain("MY_NAME");
    expect(stderr).not.toContain("is not trusted");
    expect(await run("exec", "--", "sleep", "1000")).toMatchObject({ code: 124 });
  });

  const faulty: [what: string, text: string][] = [
    ["is not YAML", "a: ["],
    ["has an unknown key", "nonsense: 1"],
    ["has a wrong value", "isolation: 7"],
    ["is a bomb", "&a ".repeat(100_000)],
    ["has 50,000 keys", Array.from({ length: 50_000 }, (_, index) => `k${index}: 1\n`).join("")],
  ];
  it.each(faulty)("that %s does not stop a command", async (_, text) => {
    writeProjectFile("drover.yaml", text);
    const { code, stderr } = await run("exec", "true");
    expect([code, stderr]).toEqual([0, expect.stringMatching(/ignored drover\.yaml, which is invalid \[DROVER-CFG-/)]);
    env["DROVER_TRUST"] = cwd;
    expect(await run("exec", "true")).toMatchObject({ code: 125 });
  });

  it("does not take over the settings and agents of a trusted project through links", async () => {
    writeProjectFile("project/drover.yaml", "execution:\n  audit:\n    enabled: false\n");
    writeProjectFile("project/agents/mine.yaml", "name: mine\ncommand: sh mine.sh\n");
    writeProjectFile("stranger/mine.sh", `touch ${join(cwd, "it-ran")}`);
    await run("trust", "project");
    const untrustedDirectory = join(cwd, "stranger");
    for (const name of ["drover.yaml", "agents"])
      symlinkSync(join("..", "project", name), join(untrustedDirectory, name));
    const runUntrusted = (...args: string[]): Promise<CommandResult> => drover(args, { cwd: untrustedDirectory, env });
    const message = (what: string): string =>
      `drover: ${untrustedDirectory} is not trusted: ignored ${what}. Trust it with: drover trust ${untrustedDirectory}\n`;
    expect(await runUntrusted("exec", "true")).toMatchObject({
      code: 0,
      stderr: message("execution.audit.enabled of drover.yaml"),
    });
    expect((await runUntrusted("runs", "list", "--quiet")).stdout.trim().split("\n")).toHaveLength(1);
    const refused = await runUntrusted("run", "mine");
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("agents/ (1)") });
    expect(hasRun()).toBe(false);
    await run("trust", "stranger");
    expect(await runUntrusted("run", "mine")).toMatchObject({ code: 0, stderr: "" });
    expect(hasRun()).toBe(true);
  });

  it("above a trusted directory stays untrusted, and a link counts as its target", async () => {
    writeProjectFile("drover.yaml", "isolation: none\n");
    mkdirSync(join(cwd, "below"));
    env["DROVER_TRUST"] = join(cwd, "below");
    const below = { cwd: join(cwd, "below"), env };
    expect((await drover(["exec", "true"], below)).stderr).toContain(line("isolation of drover.yaml"));
    symlinkSync(join(cwd, "drover.yaml"), join(cwd, "below", "drover.yaml"));
    expect((await drover(["exec", "true"], below)).stderr).toContain(line("isolation of drover.yaml"));
  });
});

describe("the trust prompt", () => {
  it("appears once at a terminal, and yes takes effect immediately", async () => {
    writeProjectFile("drover.yaml", "isolation: group\n");
    const first = openTerminal(["exec", "true"], { cwd, env });
    await first.waitForText("[y/N]");
    first.press("y\r");
    await first.exitCode;
    expect(first.shown()).toContain("isolation of drover.yaml");
    expect(await run("trust", "list", "--json")).toMatchObject({ stdout: expect.stringContaining('"trusted":true') });
    expect((await run("exec", "true")).stderr).not.toContain("trusted");
  });

  it("does not repeat after no; --no-input asks nothing and trusts nothing", async () => {
    writeProjectFile("drover.yaml", "isolation: group\n");
    const withoutInput = openTerminal(["exec", "--no-input", "true"], { cwd, env });
    await withoutInput.exitCode;
    expect(withoutInput.shown()).not.toContain("[y/N]");
    const first = openTerminal(["exec", "true"], { cwd, env });
    await first.waitForText("[y/N]");
    first.press("\r");
    await first.exitCode;
    const secondPrompt = openTerminal(["exec", "true"], { cwd, env });
    await secondPrompt.exitCode;
    expect(secondPrompt.shown()).not.toContain("[y/N]");
    expect(secondPrompt.shown()).toContain("is not trusted");
  });
});

it("keeps the decisions of concurrent commands", async () => {
  const names = Array.from({ length: 8 }, (_, index) => join(cwd, `p${index}`));
  for (const name of names) mkdirSync(name);
  await Promise.all(names.map((name) => run("trust", name)));
  const listed = (await run("trust", "list", "--json")).stdout.trim().split("\n");
  expect(listed.map((each) => (JSON.parse(each) as { path: string }).path)).toEqual(names);
});

it("says why the file of trusted directories is ignored", async () => {
  await run("trust");
  chmodSync(join(env["HOME"]!, ".config/drover/trusted.json"), 0o666);
  writeProjectFile("drover.yaml", "isolation: none\n");
  const { stderr } = await run("exec", "true");
  expect(stderr).toMatch(/trusted\.json is ignored: other users can write to it/);
  expect(stderr).toContain(line("isolation of drover.yaml"));
});

describe("a project created by init", () => {
  it("works immediately, without a prompt", async () => {
    expect(await run("init", "my-agents")).toMatchObject({ code: 0 });
    const at = { cwd: join(cwd, "my-agents"), env };
    const { code, stdout, stderr } = await drover(["run", "greet", "--name", "Ada"], at);
    expect([code, stdout]).toEqual([0, expect.stringContaining("Hello, Ada!")]);
    expect(stderr).not.toContain("trusted");
  });

  it("is all that init trusts in a directory with other files", async () => {
    writeProjectFile("below/drover.yaml", "isolation: none\n");
    expect(await run("init")).toMatchObject({ code: 0 });
    expect(await run("run", "greet", "--name", "Ada")).toMatchObject({ code: 0 });
    expect((await drover(["exec", "true"], { cwd: join(cwd, "below"), env })).stderr).toContain("is not trusted");
    expect(readFileSync(join(env["HOME"]!, ".config/drover/trusted.json"), "utf8")).not.toContain(`"path": "${cwd}"`);
  });

  it("is trusted except for profiles that existed before", async () => {
    writeProjectFile("profiles/theirs.json", { type: "a", command: "touch it-ran" });
    expect((await run("init")).stderr).toContain(`drover trust ${cwd}`);
    expect(await run("run", "greet", "--name", "Ada")).toMatchObject({ code: 2 });
  });
});
