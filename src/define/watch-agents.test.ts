import { mkdir, mkdtemp, rename, rm, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import type { LoadedAgents } from "./load-agents.ts";
import { openSchemaChecker, type SchemaChecker } from "./json-schema/checker.ts";
import { type AgentsWatch, watchAgents } from "./watch-agents.ts";

const schemas = openSchemaChecker();
let root: string;
let directory: string;
let reported: LoadedAgents[];
let watch: AgentsWatch;
let controller: AbortController;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "drover-watch-"));
  directory = join(root, "agents");
  await mkdir(directory);
  await writeFile(join(directory, "a.json"), formatAgent("a"));
  reported = [];
  controller = new AbortController();
  watch = watchAgents(directory, schemas, (loaded) => void reported.push(loaded), controller.signal);
  await expectAgents(["a"]);
});
afterEach(async () => {
  await watch.stop();
  await rm(root, { recursive: true, force: true });
});
afterAll(() => schemas.stop());

const formatAgent = (name: string, command = "ls") => JSON.stringify({ name, command });
const expectAgents = (names: string[]) =>
  expect.poll(() => reported.at(-1)?.agents.map(({ agent }) => agent.name)).toEqual(names);

test("reports files that are added, changed, broken and removed", async () => {
  await writeFile(join(directory, "b.json"), formatAgent("b"));
  await expectAgents(["a", "b"]);
  await writeFile(join(directory, "b.json"), formatAgent("renamed"));
  await expectAgents(["a", "renamed"]);
  await writeFile(join(directory, "b.json"), "{");
  await expect.poll(() => reported.at(-1)?.faults).toMatchObject([{ file: join(directory, "b.json") }]);
  await unlink(join(directory, "b.json"));
  await expect.poll(() => reported.at(-1)).toMatchObject({ faults: [] });
  expect(reported.at(-1)?.agents.map(({ agent }) => agent.name)).toEqual(["a"]);
});

test("keeps the last valid definition after a bad edit and reports the fault until the file is fixed or removed", async () => {
  const latest = () => reported.at(-1)?.agents.map(({ agent, fault }) => [agent.command, fault?.split(": ")[0]]);
  await writeFile(join(directory, "a.json"), '{"name": "a", "command": "pwd", "comand": 1}');
  await expect.poll(latest).toEqual([["ls", join(directory, "a.json:1")]]);
  await writeFile(join(directory, "a.json"), '{"name": "a"');
  await expect.poll(() => reported.at(-1)?.faults).toMatchObject([{ code: "DROVER-AGT-002" }]);
  expect(latest()).toEqual([["ls", join(directory, "a.json:1")]]);
  await writeFile(join(directory, "twin.json"), formatAgent("a", "cat"));
  await writeFile(join(directory, "a.json"), formatAgent("a", "pwd"));
  await expect.poll(latest).toEqual([["pwd", join(directory, "a.json:1")]]);
  expect(reported.at(-1)?.faults).toMatchObject([{ code: "DROVER-AGT-005" }]);
  await unlink(join(directory, "a.json"));
  await expect.poll(latest).toEqual([["cat", undefined]]);
});

test("notices a file replaced by a rename, as editors do", async () => {
  await writeFile(join(directory, ".a.json.tmp"), formatAgent("a", "pwd"));
  await rename(join(directory, ".a.json.tmp"), join(directory, "a.json"));
  await expect.poll(() => reported.at(-1)?.agents[0]?.agent.command).toBe("pwd");
});

test("keeps watching a directory that is removed and recreated", async () => {
  await rm(directory, { recursive: true });
  await expectAgents([]);
  expect(reported.at(-1)?.faults).toMatchObject([{ code: "DROVER-AGT-001", file: directory }]);
  await mkdir(directory);
  await writeFile(join(directory, "c.json"), formatAgent("c"));
  await expectAgents(["c"]);
  await writeFile(join(directory, "d.json"), formatAgent("d"));
  await expectAgents(["c", "d"]);
});

test("does not report a directory again if nothing changed", async () => {
  let schemaChecks = 0;
  const countingSchemas: SchemaChecker = {
    ...schemas,
    checkSchema: (schema) => (schemaChecks++, schemas.checkSchema(schema)),
  };
  const text = '{"name": "a", "command": "ls", "parameters_schema": {"type": "object"}}';
  await writeFile(join(directory, "a.json"), text);
  const otherReports: LoadedAgents[] = [];
  const second = watchAgents(directory, countingSchemas, (loaded) => void otherReports.push(loaded), controller.signal);
  try {
    await expect.poll(() => otherReports.length).toBe(1);
    const previousChecks = schemaChecks;
    await writeFile(join(directory, "a.json"), ` ${text}`);
    await expect.poll(() => schemaChecks).toBeGreaterThan(previousChecks);
    await writeFile(join(directory, "b.json"), formatAgent("b"));
    await expect.poll(() => otherReports.at(-1)?.agents.length).toBe(2);
    expect(otherReports).toHaveLength(2);
  } finally {
    await second.stop();
  }
});

test("reports nothing after a stop, which is idempotent and may come from the signal", async () => {
  await Promise.all([watch.stop(), watch.stop()]);
  const otherReports: LoadedAgents[] = [];
  const second = watchAgents(directory, schemas, (loaded) => void otherReports.push(loaded), controller.signal);
  await expect.poll(() => otherReports.length).toBe(1);
  controller.abort();
  await second.stop();
  // A third watch that is still active shows when the change could have been noticed.
  const third = watchAgents(directory, schemas, (loaded) => void reported.push(loaded), new AbortController().signal);
  try {
    await writeFile(join(directory, "late.json"), formatAgent("late"));
    await expectAgents(["a", "late"]);
    expect(otherReports).toHaveLength(1);
  } finally {
    await third.stop();
  }
});

test("starts nothing if the signal is already aborted", async () => {
  const otherReports: LoadedAgents[] = [];
  await watchAgents(directory, schemas, (loaded) => void otherReports.push(loaded), AbortSignal.abort()).stop();
  expect(otherReports).toEqual([]);
});
