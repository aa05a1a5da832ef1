import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { loadAgents, loadAgentFiles, type LoadedAgents } from "./load-agents.ts";
import { openSchemaChecker } from "./json-schema/checker.ts";
import { watchAgents } from "./watch-agents.ts";

const schemas = openSchemaChecker();
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-fleet-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));
afterAll(() => schemas.stop());

const put = (name: string, text: string): void => writeFileSync(join(directory, name), text);
const toNames = ({ agents }: LoadedAgents): string[] => agents.map(({ agent }) => agent.name);
/** As `drover agents check` prints them, without the directory. */
const formatFaults = ({ faults }: LoadedAgents): string[] =>
  faults.map(({ file, line, path, message, code }) =>
    [`${file}:${line}`, code, path, message].join(" ").replaceAll(`${directory}/`, ""),
  );

test("applies the defaults to every agent of a fleet: merges objects, replaces lists and values", async () => {
  put(
    "fleet.yaml",
    `defaults:
  model: sonnet
  max_turns: 20
  permissions: { mode: plan, allowed_tools: [Read, Grep] }
  mcp_servers: { github: { command: gh, env: { A: a, B: b } } }
  working_directory: work
agents:
  - name: reviewer
    system_prompt: You review.
  - name: writer
    model: opus
    permissions: { mode: acceptEdits, allowed_tools: [Write] }
    mcp_servers: { github: { env: { B: other } }, docs: { url: "http://127.0.0.1" } }
`,
  );
  const { agents, faults } = await loadAgents(directory, schemas);
  expect(faults).toEqual([]);
  expect(agents.map(({ agent, line }) => ({ ...agent, line }))).toMatchObject([
    {
      name: "reviewer",
      model: "sonnet",
      max_turns: 20,
      permissions: { mode: "plan", allowed_tools: ["Read", "Grep"] },
      working_directory: join(directory, "work"),
      line: 8,
    },
    {
      name: "writer",
      model: "opus",
      max_turns: 20,
      permissions: { mode: "acceptEdits", allowed_tools: ["Write"] },
      mcp_servers: { github: { command: "gh", env: { A: "a", B: "other" } }, docs: { url: "http://127.0.0.1" } },
      line: 10,
    },
  ]);
});

test("lets a fleet refer to an agent's file and override its keys", async () => {
  mkdirSync(join(directory, "more"));
  put("more/writer.md", "---\nmodel: haiku\nworking_directory: here\n---\n# Writer\nYou write.\n");
  put(
    "fleet.json",
    JSON.stringify({ defaults: { model: "sonnet", max_turns: 3 }, agents: [{ path: "more/writer.md", max_turns: 9 }] }),
  );
  const { agents, faults } = await loadAgents(directory, schemas);
  expect(faults).toEqual([]);
  expect(agents).toMatchObject([
    {
      file: join(directory, "more/writer.md"),
      source: join(directory, "fleet.json"),
      agent: {
        name: "writer",
        model: "haiku",
        max_turns: 9,
        system_prompt: "You write.",
        working_directory: join(directory, "more/here"),
      },
    },
  ]);
});

test("does not load a file separately if a fleet refers to it", async () => {
  put("writer.yaml", "name: writer\n");
  put("inner.yaml", "agents: [{ name: inner }]\n");
  put("zoo.yaml", "include: [inner.yaml]\nagents: [{ path: writer.yaml }]\n");
  const loaded = await loadAgents(directory, schemas);
  expect([toNames(loaded), loaded.faults]).toEqual([["writer", "inner"], []]);
});

test("passes the defaults of a fleet on to included fleets, which may override them", async () => {
  put("a.yaml", "defaults: { model: sonnet, max_turns: 5 }\ninclude: [sub/b.yaml]\n");
  mkdirSync(join(directory, "sub"));
  put("sub/b.yaml", "defaults: { model: opus }\nagents: [{ name: deep }]\n");
  const { agents, faults } = await loadAgentFiles([join(directory, "a.yaml")], schemas);
  expect([faults, agents[0]?.agent]).toMatchObject([[], { name: "deep", model: "opus", max_turns: 5 }]);
});

test("skips defaults that have no effect on a procedural agent", async () => {
  put(
    "fleet.yaml",
    "defaults: { executor: claude-sdk, model: sonnet, timeout_seconds: 9 }\nagents: [{ name: ls, command: ls }]\n",
  );
  const { agents, faults } = await loadAgents(directory, schemas);
  expect(faults).toEqual([]);
  expect(agents[0]!.agent).toMatchObject({ name: "ls", type: "procedural", timeout_seconds: 9 });
  expect(agents[0]!.agent).not.toHaveProperty("executor");
});

test("reports file and line of every fault; loads the valid agents unless the defaults are invalid", async () => {
  put("bad.md", "No title\n");
  put("inner.yaml", "agents: []\n");
  put(
    "fleet.yaml",
    `defaults:
  modle: sonnet
  budget: { cost_usd: 0 }
  name: all
agents:
  - name: good
  - name: wrong
    permissions: { mode: yolo }
    permisions: {}
  - path: missing.yaml
  - path: bad.md
  - path: inner.yaml
  - {}
include: [good.yaml]
`,
  );
  put("good.yaml", "name: alone\n");
  const loaded = await loadAgentFiles([join(directory, "fleet.yaml")], schemas);
  expect(toNames(loaded)).toEqual([]);
  expect(formatFaults(loaded)).toEqual([
    expect.stringMatching(/^fleet.yaml:3 DROVER-AGT-004 defaults.budget.cost_usd .*budget.cost_usd has a wrong value/),
    expect.stringMatching(/^fleet.yaml:2 DROVER-AGT-003 defaults.modle unknown key modle. Did you mean model\?/),
    expect.stringMatching(/^fleet.yaml:4 DROVER-AGT-003 defaults.name unknown key name/),
    expect.stringMatching(/^fleet.yaml:14 DROVER-AGT-004 include good.yaml is not a fleet file/),
    expect.stringMatching(/^fleet.yaml:8 DROVER-AGT-004 permissions.mode permissions.mode has a wrong value/),
    expect.stringMatching(/^fleet.yaml:9 DROVER-AGT-003 permisions unknown key permisions. Did you mean permissions/),
    expect.stringMatching(/^missing.yaml:null DROVER-AGT-001 .*cannot be read \(ENOENT\)/),
    expect.stringMatching(/^bad.md:1 DROVER-AGT-004 name the title is missing/),
    expect.stringMatching(/^fleet.yaml:12 DROVER-AGT-004 path inner.yaml is a fleet file/),
    expect.stringMatching(/^fleet.yaml:13 DROVER-AGT-004 name name is missing/),
  ]);
  put("fleet.yaml", "agents: [{ name: good }, { name: wrong, modle: x }, { path: missing.yaml }]\n");
  expect(toNames(await loadAgentFiles([join(directory, "fleet.yaml")], schemas))).toEqual(["good"]);
});

test("refuses a malformed fleet as a whole and suggests the intended key", async () => {
  put("fleet.yaml", "agents: []\ndefault: {}\n");
  expect(formatFaults(await loadAgents(directory, schemas))).toEqual([
    "fleet.yaml:2 DROVER-AGT-003 default unknown key default. Did you mean defaults?",
  ]);
  put("fleet.yaml", "agents: { name: a }\n");
  expect(formatFaults(await loadAgents(directory, schemas))).toEqual([
    expect.stringMatching(/^fleet.yaml:1 DROVER-AGT-004 agents agents has a wrong value/),
  ]);
});

test("reports both locations of a duplicate name, in one fleet and across files", async () => {
  put("fleet.yaml", "agents:\n  - name: a\n  - name: a\n  - name: b\n");
  put("other.json", '{"name": "b"}');
  const loaded = await loadAgents(directory, schemas);
  expect(toNames(loaded)).toEqual([]);
  expect(loaded.faults.map(({ code }) => code)).toEqual(["DROVER-AGT-005", "DROVER-AGT-005"]);
  expect(loaded.faults[0]!.message).toContain(`${join(directory, "fleet.yaml")}:2, ${join(directory, "fleet.yaml")}:3`);
  expect(loaded.faults[1]!.message).toContain(`${join(directory, "fleet.yaml")}:4, ${join(directory, "other.json")}:1`);
});

test.each([
  ["directly", { "a.yaml": "include: [./a.yaml]\nagents: [{ name: a }]\n" }],
  [
    "through other files",
    {
      "a.yaml": "include: [b.yaml]\nagents: [{ name: a }]\n",
      "b.yaml": "include: [c.yaml]",
      "c.yaml": "include: [a.yaml]",
    },
  ],
  ["through a symlink", { "a.yaml": "include: [link.yaml]\nagents: [{ name: a }]\n" }],
])("reports the cycle of a fleet that includes itself %s, and loads its agents", async (_, files) => {
  for (const [name, text] of Object.entries(files)) put(name, text);
  symlinkSync("a.yaml", join(directory, "link.yaml"));
  const loaded = await loadAgentFiles([join(directory, "a.yaml")], schemas);
  expect(toNames(loaded)).toEqual(["a"]);
  expect(loaded.faults).toMatchObject([{ code: "DROVER-AGT-008" }]);
  expect(loaded.faults[0]!.message).toMatch(/^the fleet file includes itself: .*a\.yaml -> /);
});

test("reports the cycle if two files of a directory include each other", async () => {
  put("a.yaml", "include: [b.yaml]\n");
  put("b.yaml", "include: [a.yaml]\n");
  expect((await loadAgents(directory, schemas)).faults).toMatchObject([{ code: "DROVER-AGT-008" }]);
});

test("reads a fleet file once even if two files include it", async () => {
  for (let level = 0; level < 30; level++)
    put(`f${level}.yaml`, `include: [f${level + 1}.yaml, ./f${level + 1}.yaml]\n`);
  put("f30.yaml", "agents: [{ name: last }]\n");
  const loaded = await loadAgentFiles([join(directory, "f0.yaml")], schemas);
  expect(toNames(loaded)).toEqual(["last"]);
  expect(loaded.faults).toHaveLength(30);
  expect(loaded.faults[0]!.message).toContain("is listed twice");
});

test("keeps the last valid definition of a fleet's agent, and drops a removed agent", async () => {
  put("fleet.yaml", "agents:\n  - { name: a, model: one }\n  - { name: b }\n  - { name: c }\n");
  const first = await loadAgents(directory, schemas);
  put("fleet.yaml", "agents:\n  - { name: a, modle: two }\n  - { name: b }\n");
  const second = await loadAgents(directory, schemas, first.agents);
  expect(second.agents).toMatchObject([
    { agent: { name: "a", model: "one" }, fault: expect.stringContaining("modle") },
    { agent: { name: "b" } },
  ]);
  put("fleet.yaml", "agents: [\n");
  const third = await loadAgents(directory, schemas, second.agents);
  expect(third.agents).toMatchObject([
    { agent: { name: "a" }, fault: expect.any(String) },
    { agent: { name: "b" }, fault: expect.stringContaining("not valid YAML") },
  ]);
  rmSync(join(directory, "fleet.yaml"));
  expect((await loadAgents(directory, schemas, third.agents)).agents).toEqual([]);
});

test("watches a fleet file given instead of a directory, and the files it refers to", async () => {
  mkdirSync(join(directory, "elsewhere"));
  put("elsewhere/a.yaml", "name: a\nmodel: one\n");
  put("fleet.yaml", "agents: [{ path: elsewhere/a.yaml }]\n");
  let latest: LoadedAgents | null = null;
  const controller = new AbortController();
  const watch = watchAgents(
    join(directory, "fleet.yaml"),
    schemas,
    (loaded) => void (latest = loaded),
    controller.signal,
  );
  const listModels = (): unknown => latest?.agents.map(({ agent }) => agent.model);
  await expect.poll(listModels).toEqual(["one"]);
  put("elsewhere/a.yaml", "name: a\nmodel: another\n");
  await expect.poll(listModels).toEqual(["another"]);
  put("fleet.yaml", "agents: [{ name: b, model: third }]\n");
  await expect.poll(listModels).toEqual(["third"]);
  await watch.stop();
});
