import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, it } from "vitest";
import { acceptHeldAgent, type AgentGate, createAgentGate, isReadOnlyForUser, listHeldAgents } from "./agent-gate.ts";
import type { LoadedAgents } from "./load-agents.ts";
import { openSchemaChecker } from "./json-schema/checker.ts";
import { type AgentsWatch, watchAgents } from "./watch-agents.ts";

const schemas = openSchemaChecker();
afterAll(() => schemas.stop());
let base: string;
let directory: string;
let latest: LoadedAgents | null;
let watches: AgentsWatch[];
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "drover-gate-"));
  directory = join(base, "agents");
  mkdirSync(directory);
  latest = null;
  watches = [];
  put("a", "ls");
});
afterEach(async () => {
  for (const watch of watches) await watch.stop();
  rmSync(base, { recursive: true, force: true });
});

const put = (name: string, command: string, file = `${name}.json`): void =>
  writeFileSync(join(directory, file), JSON.stringify({ name, command }));
const serve = (gate: AgentGate = createAgentGate(directory, base)): Promise<AgentsWatch> =>
  new Promise((resolve) => {
    const onChange = (loaded: LoadedAgents): void => {
      latest = loaded;
      resolve(watch);
    };
    const watch = watchAgents(directory, schemas, onChange, new AbortController().signal, { gate });
    watches.push(watch);
  });
const listOffered = (): string[] | undefined => latest?.agents.map(({ agent }) => `${agent.name}: ${agent.command}`);
const listHeldNames = (): string[] => listHeldAgents(base).map(({ name }) => name);
const accept = (name: string): void => {
  for (const item of listHeldAgents(base)) if (item.name === name) acceptHeldAgent(base, item);
};

it("offers the definitions that were there at the start, and holds later ones until they are accepted", async () => {
  await serve();
  expect(listOffered()).toEqual(["a: ls"]);
  put("evil", "rm -rf");
  await expect.poll(listHeldNames).toEqual(["evil"]);
  await expect
    .poll(() => latest?.faults)
    .toMatchObject([
      {
        code: "DROVER-AGT-010",
        file: join(directory, "evil.json"),
        next: expect.stringContaining("drover agents accept evil"),
      },
    ]);
  expect(listOffered()).toEqual(["a: ls"]);
  accept("evil");
  await expect.poll(listOffered).toEqual(["a: ls", "evil: rm -rf"]);
  expect([listHeldNames(), latest?.faults]).toEqual([[], []]);
});

it("keeps the previous definition and reports that a change is held", async () => {
  await serve();
  put("a", "rm -rf");
  await expect.poll(listHeldNames).toEqual(["a"]);
  await expect.poll(() => latest?.agents[0]?.fault).toMatch(/the change to a is held/);
  expect(listOffered()).toEqual(["a: ls"]);
  put("a", "ls");
  await expect.poll(listHeldNames).toEqual([]);
  await expect.poll(() => latest?.agents[0]?.fault).toBe(undefined);
});

it("accepts the definition that was held, not a later edit of its file", async () => {
  await serve();
  put("a", "good");
  await expect.poll(listHeldNames).toEqual(["a"]);
  const [seen] = listHeldAgents(base);
  put("a", "evil");
  await expect.poll(() => listHeldAgents(base).map(({ hash }) => hash)).not.toContain(seen!.hash);
  expect(() => acceptHeldAgent(base, seen!)).toThrow("ENOENT");
  await expect.poll(listOffered).toEqual(["a: ls"]);
});

/** Creates a directory with the known agent and another one. */
const createOtherDirectory = (): string => {
  mkdirSync(join(base, "other-agents"));
  for (const [name, command] of Object.entries({ a: "ls", evil: "x" }))
    writeFileSync(join(base, "other-agents", `${name}.json`), JSON.stringify({ name, command }));
  return join(base, "other-agents");
};

const changes: [what: string, change: () => void][] = [
  [
    "a file that is renamed into the directory",
    () => (put("evil", "x", "evil.tmp"), renameSync(join(directory, "evil.tmp"), join(directory, "evil.json"))),
  ],
  [
    "a link to a file elsewhere",
    () => (
      writeFileSync(join(base, "x.json"), '{"name":"evil","command":"x"}'),
      symlinkSync(join(base, "x.json"), join(directory, "evil.json"))
    ),
  ],
  ["a fleet file", () => writeFileSync(join(directory, "fleet.yaml"), "agents:\n  - { name: evil, command: x }\n")],
  ["a markdown file", () => writeFileSync(join(directory, "evil.md"), "# Evil\n\nYou are evil.\n")],
  ["a definition of a known name in a new file", () => (rmSync(join(directory, "a.json")), put("a", "x", "z.json"))],
  [
    "a new directory in place of the old one",
    () => (renameSync(directory, join(base, "old")), mkdirSync(directory), put("a", "ls"), put("evil", "x")),
  ],
  ["a YAML file", () => writeFileSync(join(directory, "evil.yaml"), "name: evil\ncommand: x\n")],
  [
    "a hard link to a file elsewhere",
    () => (
      writeFileSync(join(base, "x.json"), '{"name":"evil","command":"x"}'),
      linkSync(join(base, "x.json"), join(directory, "evil.json"))
    ),
  ],
  [
    "a link in place of the directory",
    () => (renameSync(directory, join(base, "old")), symlinkSync(createOtherDirectory(), directory)),
  ],
  [
    "an edit that keeps the size and the times of a file",
    () => {
      const { atime, mtime } = statSync(join(directory, "a.json"));
      put("a", "rm");
      utimesSync(join(directory, "a.json"), atime, mtime);
    },
  ],
  [
    "an on_finish command added to a definition",
    () => writeFileSync(join(directory, "a.json"), '{"name":"a","command":"ls","on_finish":"x"}'),
  ],
  [
    "a schedule added to a definition",
    () =>
      writeFileSync(
        join(directory, "a.json"),
        '{"name":"a","command":"ls","schedules":[{"name":"n","cron":"* * * * *"}]}',
      ),
  ],
];
it.each(changes)("holds %s", async (_, change) => {
  await serve();
  change();
  await expect.poll(() => listHeldNames().length).toBe(1);
  await expect.poll(() => latest?.faults.some(({ code }) => code === "DROVER-AGT-010")).toBe(true);
  expect(listOffered()).toEqual(["a: ls"]);
});

it("withdraws a removed definition, and offers it again if it comes back unchanged", async () => {
  await serve();
  rmSync(join(directory, "a.json"));
  await expect.poll(listOffered).toEqual([]);
  put("a", "ls");
  await expect.poll(listOffered).toEqual(["a: ls"]);
});

it("keeps the last valid definition after a bad edit", async () => {
  await serve();
  writeFileSync(join(directory, "a.json"), "{");
  await expect.poll(() => latest?.faults).toMatchObject([{ code: "DROVER-AGT-002" }]);
  expect(listOffered()).toEqual(["a: ls"]);
});

it("keeps definitions held across a restart, and admits those that were added while stopped", async () => {
  const first = await serve();
  put("evil", "x");
  await expect.poll(listHeldNames).toEqual(["evil"]);
  await first.stop();
  put("own", "y");
  await serve();
  expect(listOffered()).toEqual(["a: ls", "own: y"]);
  accept("evil");
  await expect.poll(listOffered).toEqual(["a: ls", "evil: x", "own: y"]);
});

it("keeps the previous definition of a held change in use across restarts, and admits it when the file has it again", async () => {
  const first = await serve();
  put("a", "rm -rf");
  await expect.poll(listHeldNames).toEqual(["a"]);
  await first.stop();
  const second = await serve();
  expect(listOffered()).toEqual(["a: ls"]);
  expect(latest?.agents[0]?.fault).toMatch(/the change to a is held/);
  const [held] = listHeldAgents(base);
  put("a", "rm -r");
  await expect.poll(() => listHeldAgents(base).map(({ hash }) => hash)).not.toContain(held!.hash);
  await second.stop();
  await serve();
  expect(listOffered()).toEqual(["a: ls"]);
  put("a", "ls");
  await expect.poll(listHeldNames).toEqual([]);
  await expect.poll(() => latest?.agents[0]?.fault).toBe(undefined);
  expect(listOffered()).toEqual(["a: ls"]);
});

it("holds definitions in a directory created after startup", async () => {
  rmSync(directory, { recursive: true });
  await serve();
  expect(listOffered()).toEqual([]);
  mkdirSync(directory);
  put("evil", "x");
  await expect.poll(listHeldNames).toEqual(["evil"]);
  expect(listOffered()).toEqual([]);
});

it("writes nothing for a short-lived command", async () => {
  await serve(createAgentGate(directory, null));
  put("evil", "x");
  await expect.poll(() => latest?.faults).toMatchObject([{ code: "DROVER-AGT-010" }]);
  expect([listOffered(), readdirSync(base)]).toEqual([["a: ls"], ["agents"]]);
});

it("does not treat a directory as read-only if its owner or root can make it writable again", () => {
  expect(isReadOnlyForUser(directory)).toBe(false);
  chmodSync(directory, 0o555);
  // The owner can change the mode again.
  expect(isReadOnlyForUser(directory)).toBe(false);
  if (process.getuid?.() === 0) chownSync(directory, 65534, 65534);
  expect(isReadOnlyForUser(directory)).toBe(false);
});
