import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { drover, createDirectory, type CommandResult } from "./drover.ts";
import { startCoordinator, type CoordinatorProcess } from "./coordinator-process.ts";

describe("agents put and agents delete", () => {
  let coordinator: CoordinatorProcess;
  let cwd: string;
  beforeAll(async () => {
    cwd = createDirectory(undefined, "file");
    coordinator = await startCoordinator(cwd, {}, "file");
  });
  const run = (args: string[], input?: string): Promise<CommandResult> =>
    drover(["agents", ...args], {
      cwd,
      env: { DROVER_API_URL: coordinator.url, DROVER_API_KEY: coordinator.token },
      ...(input === undefined ? {} : { input }),
    });
  const stored = async (name: string) =>
    (await coordinator.call<{ description?: string; source: string }>("GET", `/agents/${name}`)).json;

  it("creates an agent from a file, says so, and says when it replaces one", async () => {
    const file = join(cwd, "greet.yaml");
    writeFileSync(file, "name: greet\ncommand: echo hello\ndescription: first\n");
    expect(await run(["put", file])).toMatchObject({
      code: 0,
      stdout: "created greet\n",
      stderr: "See its parameters: drover run greet --help\n",
    });
    expect(await stored("greet")).toMatchObject({ source: "api", description: "first" });
    writeFileSync(file, readFileSync(file, "utf8").replace("first", "second"));
    expect((await run(["put", file])).stdout).toBe("updated greet\n");
    expect(await stored("greet")).toMatchObject({ description: "second" });
  });

  it("reads Markdown, JSON and YAML from stdin", async () => {
    const definitions = [
      ["from-json", '{"name": "from-json", "command": "true"}'],
      ["from-yaml", "# a comment\nname: from-yaml\ncommand: 'true'\n"],
      ["from-md", "---\ndescription: writes\n---\n\n# From md\n\nYou write one line.\n"],
    ] as const;
    for (const [name, definition] of definitions) {
      const { stdout } = await run(["put", "-", "--json"], definition);
      expect(JSON.parse(stdout)).toMatchObject({ name, result: "created", agent: { name, source: "api" } });
    }
  });

  it("prints every error with its line, and stores nothing", async () => {
    const file = join(cwd, "broken.yaml");
    writeFileSync(file, "name: broken\ncommand: 'true'\ncolour: red\ntimeout_seconds: soon\n");
    const { code, stdout, stderr } = await run(["put", file]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(`${file}:3`);
    expect(stderr).toContain(`${file}:4`);
    expect((await coordinator.call("GET", "/agents/broken")).status).toBe(404);
    const piped = await run(["put", "-"], "name: broken\ncommand: 'true'\ncolour: red\n");
    expect(piped).toMatchObject({ code: 1, stderr: expect.stringContaining("stdin.yaml:3") });
  });

  it("refuses other files and formats with the next step", async () => {
    expect(await run(["put", "notes.txt"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("its name must end in .md, .json, .yaml or .yml"),
    });
    expect(await run(["put", "-", "--format", "toml"], "")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--format toml is not one of md, json, yaml"),
    });
  });

  it("deletes agents, all of the named ones or none", async () => {
    await run(["put", "-"], '{"name": "old", "command": "true"}');
    const partlyUnknown = await run(["delete", "old", "odl"]);
    expect(partlyUnknown).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("Did you mean old?") });
    expect(await stored("old")).toMatchObject({ source: "api" });
    expect(await run(["delete", "old"])).toMatchObject({ code: 0, stdout: "deleted old\n" });
    expect((await coordinator.call("GET", "/agents/old")).status).toBe(404);
  });

  it("refuses to delete an agent of a file, and names the reason", async () => {
    const directory = createDirectory();
    const agents = join(directory, "agents");
    writeFileSync(join(directory, "drover.yaml"), `agents: ${agents}\n`);
    mkdirSync(agents);
    writeFileSync(join(agents, "filed.yaml"), "name: filed\ncommand: 'true'\n");
    const otherCoordinator = await startCoordinator(directory);
    const env = { DROVER_API_URL: otherCoordinator.url, DROVER_API_KEY: otherCoordinator.token };
    const { code, stderr } = await drover(["agents", "delete", "filed"], { cwd: directory, env });
    expect(code).toBe(2);
    expect(stderr).toContain("filed cannot be deleted here: a file of the coordinator defines it.");
    expect(stderr).toContain("Remove its file from the agents directory.");
  });
});
