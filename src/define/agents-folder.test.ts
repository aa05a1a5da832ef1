import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { loadAgents } from "./agents-folder.ts";
import { openSchemaChecker } from "./json-schema/checker.ts";

const schemas = openSchemaChecker();
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "drover-agents-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));
afterAll(() => schemas.stop());

const put = (name: string, text: string | Uint8Array) => writeFile(join(folder, name), text);

test("a broken file is named and the others still load", async () => {
  await put("a.json", '{"name": "a", "command": "ls"}');
  await put("b.json", '{\n"name": "b"\n"command": "ls"}');
  await put("c.yaml", "name: c\nsystem_prompt: x\n");
  await put("d.md", "# D\nx\n");
  await put("e.yml", "name: e\nlist_style: 4\n");
  const { agents, faults } = await loadAgents(folder, schemas);
  expect(agents.map(({ agent, file }) => [agent.name, file])).toEqual([
    ["a", join(folder, "a.json")],
    ["c", join(folder, "c.yaml")],
    ["d", join(folder, "d.md")],
  ]);
  expect(faults.map(({ file, line }) => [file, line])).toEqual([
    [join(folder, "b.json"), 3],
    [join(folder, "e.yml"), 2],
  ]);
});

test("of two agents with one name neither loads, and both files are named", async () => {
  await put("one.json", '{"name": "twin", "command": "ls"}');
  await put("two.md", "# Twin\nx\n");
  await put("other.md", "# Other\nx\n");
  const { agents, faults } = await loadAgents(folder, schemas);
  expect(agents.map(({ agent }) => agent.name)).toEqual(["other"]);
  expect(faults).toMatchObject([{ code: "DROVER-AGT-005" }]);
  expect(faults[0]!.message).toContain(join(folder, "one.json"));
  expect(faults[0]!.message).toContain(join(folder, "two.md"));
});

test("a schema that is none is told at its line", async () => {
  await put(
    "a.yaml",
    "name: a\ncommand: ls\nparameters_schema:\n  type: object\n  properties:\n    x: { type: strng }\n",
  );
  await put("b.json", '{"name":"b","command":"ls",\n"output_schema": {"type":"object",\n"requried":["x"]}}');
  await put("c.json", '{"name":"c","command":"ls","parameters_schema":{"properties":{"x":{"pattern":"("}}}}');
  const { agents, faults } = await loadAgents(folder, schemas);
  expect(agents).toEqual([]);
  expect(faults.every(({ code }) => code === "DROVER-AGT-006")).toBe(true);
  expect(faults.find(({ file }) => file?.endsWith("a.yaml"))).toMatchObject({
    line: 6,
    path: "parameters_schema.properties.x.type",
  });
  expect(faults.find(({ file }) => file?.endsWith("b.json"))?.message).toContain("requried");
  expect(faults.find(({ file }) => file?.endsWith("c.json"))?.message).toContain("regular expression");
});

test("what is no agent file is left alone; what cannot be read is named", async () => {
  await put("README.md", "# Not an agent\n");
  await put(".hidden.json", "{");
  await put("notes.txt", "x");
  await put("latin1.yaml", Uint8Array.of(0x6e, 0x3a, 0x20, 0xe9));
  await put("huge.md", `# Huge\n${"x".repeat(2 * 1024 * 1024)}`);
  await mkdir(join(folder, "folder.json"));
  await symlink(join(folder, "nowhere"), join(folder, "dangling.json"));
  execFileSync("mkfifo", [join(folder, "pipe.json")]);
  const { agents, faults } = await loadAgents(folder, schemas);
  expect(agents).toEqual([]);
  expect(faults.map(({ file, code }) => [file?.slice(folder.length + 1), code])).toEqual(
    ["dangling.json", "folder.json", "huge.md", "latin1.yaml", "pipe.json"].map((name) => [name, "DROVER-AGT-001"]),
  );
});

test("a missing folder is a fault that names it", async () => {
  const { faults } = await loadAgents(join(folder, "none"), schemas);
  expect(faults).toMatchObject([
    { code: "DROVER-AGT-001", file: join(folder, "none"), next: "Create it, or correct the path." },
  ]);
});
