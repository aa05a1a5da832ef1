import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { loadAgents } from "./load-agents.ts";
import { openSchemaChecker } from "./json-schema/checker.ts";

const schemas = openSchemaChecker();
let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "drover-agents-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));
afterAll(() => schemas.stop());

const put = (name: string, text: string | Uint8Array) => writeFile(join(directory, name), text);

test("reports an invalid file and still loads the others", async () => {
  await put("a.json", '{"name": "a", "command": "ls"}');
  await put("b.json", '{\n"name": "b"\n"command": "ls"}');
  await put("c.yaml", "name: c\nsystem_prompt: x\n");
  await put("d.md", "# D\nx\n");
  await put("e.yml", "name: e\nlist_style: 4\n");
  const { agents, faults } = await loadAgents(directory, schemas);
  expect(agents.map(({ agent, file }) => [agent.name, file])).toEqual([
    ["a", join(directory, "a.json")],
    ["c", join(directory, "c.yaml")],
    ["d", join(directory, "d.md")],
  ]);
  expect(faults.map(({ file, line }) => [file, line])).toEqual([
    [join(directory, "b.json"), 3],
    [join(directory, "e.yml"), 2],
  ]);
});

test("loads neither of two agents with the same name and reports both files", async () => {
  await put("one.json", '{"name": "twin", "command": "ls"}');
  await put("two.md", "---\ntags: [x]\n---\n# Twin\nx\n");
  await put("other.md", "# Other\nx\n");
  const { agents, faults } = await loadAgents(directory, schemas);
  expect(agents.map(({ agent }) => agent.name)).toEqual(["other"]);
  expect(faults).toMatchObject([{ code: "DROVER-AGT-005", line: 1 }]);
  expect(faults[0]!.message).toContain(`${join(directory, "one.json")}:1`);
  expect(faults[0]!.message).toContain(`${join(directory, "two.md")}:4`);
});

test("reports the line of an invalid schema", async () => {
  await put(
    "a.yaml",
    "name: a\ncommand: ls\nparameters_schema:\n  type: object\n  properties:\n    x: { type: strng }\n",
  );
  await put("b.json", '{"name":"b","command":"ls",\n"output_schema": {"type":"object",\n"requried":["x"]}}');
  await put("c.json", '{"name":"c","command":"ls","parameters_schema":{"properties":{"x":{"pattern":"("}}}}');
  const { agents, faults } = await loadAgents(directory, schemas);
  expect(agents).toEqual([]);
  expect(faults.every(({ code }) => code === "DROVER-AGT-006")).toBe(true);
  expect(faults.filter(({ file }) => file?.endsWith("a.yaml"))).toMatchObject([
    { line: 6, path: "parameters_schema.properties.x.type" },
  ]);
  expect(faults.find(({ file }) => file?.endsWith("b.json"))).toMatchObject({
    line: 3,
    path: "output_schema.requried",
  });
  expect(faults.find(({ file }) => file?.endsWith("c.json"))?.message).toContain("regular expression");
});

test("reports all faults of a file at once, with their lines", async () => {
  await put(
    "a.yaml",
    "name: a b\ntype: procedural\nlist_stile: comma\nmax_turns: 0\nparameters_schema: { type: strng }\noutput_schema: { $ref: other }\n",
  );
  await put("b.md", "---\ntitle: B\nmax_turns: 0\n---\n# B\nx\n");
  await put("c.yaml", "name: c\nname: d\ncommand: ls\ncommand: cat\n");
  const { faults } = await loadAgents(directory, schemas);
  const findFaults = (name: string) => faults.filter(({ file }) => file?.endsWith(name));
  expect(new Set(findFaults("a.yaml").map(({ path, line }) => `${line}: ${path}`))).toEqual(
    new Set([
      "1: name",
      "1: command",
      "3: list_stile",
      "4: max_turns",
      "5: parameters_schema.type",
      "6: output_schema.$ref",
    ]),
  );
  expect(findFaults("b.md").map(({ path }) => path)).toEqual(["title", "max_turns"]);
  expect(findFaults("c.yaml").map(({ line }) => line)).toEqual([2, 4]);
});

test.each([
  [
    "a.json",
    '{"name": "a", "command": "ls",\n"parameters_schema": {"properties": {"id": {"maximum": 12345678901234567890}}}}',
  ],
  ["a.yaml", "name: a\ncommand: ls\nparameters_schema: { properties: { id: { maximum: 12345678901234567890 } } }\n"],
  ["a.md", "---\nparameters_schema: { properties: { id: { maximum: 12345678901234567890 } } }\n---\n# A\nx\n"],
])("reports a number in %s that would lose precision", async (name, text) => {
  await put(name, text);
  const { faults } = await loadAgents(directory, schemas);
  expect(faults).toMatchObject([
    {
      code: "DROVER-AGT-004",
      path: "parameters_schema.properties.id.maximum",
      message: expect.stringContaining("12345678901234567890"),
      next: expect.stringContaining("as a string"),
    },
  ]);
});

test("ignores files that are not agents and reports unreadable ones", async () => {
  await put("README.md", "# Not an agent\n");
  await put(".hidden.json", "{");
  await put("notes.txt", "x");
  await put("latin1.yaml", Buffer.from("name: x\ntitle: \xe9\n", "latin1"));
  await put("huge.md", `# Huge\n${"x".repeat(2 * 1024 * 1024)}`);
  await mkdir(join(directory, "directory.json"));
  await symlink(join(directory, "nowhere"), join(directory, "dangling.json"));
  execFileSync("mkfifo", [join(directory, "pipe.json")]);
  const { agents, faults } = await loadAgents(directory, schemas);
  expect(agents).toEqual([]);
  expect(faults.map(({ file, code }) => [file?.slice(directory.length + 1), code])).toEqual(
    ["dangling.json", "directory.json", "huge.md", "latin1.yaml", "pipe.json"].map((name) => [
      name,
      name === "huge.md" ? "DROVER-AGT-009" : "DROVER-AGT-001",
    ]),
  );
  expect(faults.find(({ file }) => file?.endsWith("latin1.yaml"))?.line).toBe(2);
});

test("reports a missing directory", async () => {
  const { faults } = await loadAgents(join(directory, "none"), schemas);
  expect(faults).toMatchObject([
    { code: "DROVER-AGT-001", file: join(directory, "none"), next: "Create it, or correct the path." },
  ]);
});
