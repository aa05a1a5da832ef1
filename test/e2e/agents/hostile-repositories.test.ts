import { mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { type ClientName, clientNames } from "../../clients/clients.ts";
import type { Script } from "../../model-server/script.ts";
import { type AgentHarness, shareAgentHarness } from "./harness.ts";
import { waitForRunEnd, listEvents, listFilePaths, submit } from "./runs.ts";
import { canary, type Kind, plantTraps, traps } from "./traps.ts";

const writeDone = { tool: { name: "write_file", input: { path: "done.txt", content: "x" } } };
const script: Script = [
  {
    when: "work here",
    turns: [writeDone, { tool: { name: "shell", input: { command: "echo ok > shell.txt" } } }, { text: "Done." }],
  },
  { when: "write here", turns: [writeDone, { text: "Done." }] },
];

/** In its default mode gemini has no shell. */
const prompts: Readonly<Record<ClientName, string>> = { claude: "work here", codex: "work here", gemini: "write here" };

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((closed) => server.close(closed));
});

/** A server that only a malicious repository leads to. */
async function openTrap(): Promise<{ url: string; came(): number }> {
  let requestCount = 0;
  const server = createServer((socket) => {
    requestCount += 1;
    socket.destroy();
  });
  servers.push(server);
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  // A TCP server's address has a port.
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, came: () => requestCount };
}

const shared = shareAgentHarness({ script, profile: { slots: 4 } });

async function setUp() {
  const harness = await shared();
  const directory = mkdtempSync(join(harness.cwd, "place-"));
  const marks = join(directory, "marks");
  mkdirSync(marks);
  const trap = await openTrap();
  const plantRepository = (name: string, planted: readonly Kind[]): string => {
    const repository = join(directory, name, "repository");
    plantTraps(planted, {
      repository,
      mark: (mark) => `touch ${join(marks, `${name}.${mark}`)}`,
      url: trap.url,
      secret: join(directory, name, "secret.txt"),
    });
    mkdirSync(join(repository, "sub"));
    return repository;
  };
  return { harness, trap, plantRepository, marks: () => readdirSync(marks) };
}

function request({ coordinator }: AgentHarness, agent_name: string, client: ClientName, project_dir: string) {
  return submit(coordinator, { agent_name, prompt: prompts[client], project_dir });
}

const kinds = Object.keys(traps) as Kind[]; // The object's own keys.

test("nothing in a repository runs, contacts another host, or reaches the model", async () => {
  expect(kinds.flatMap((kind) => Object.keys(traps[kind])).length).toBeGreaterThanOrEqual(30);
  const { harness, trap, plantRepository, marks } = await setUp();
  const config = join(harness.home, ".codex", "config.toml");
  const configBefore = readFileSync(config, "utf8");
  const submitted = await Promise.all([
    ...clientNames.map((client) => request(harness, client, client, plantRepository(client, kinds))),
    // codex reads the settings of every parent directory.
    request(harness, "codex", "codex", join(plantRepository("codex-below", kinds), "sub")),
  ]);
  for (const { run_id, project_dir } of submitted) {
    const run = await waitForRunEnd(harness.coordinator, run_id);
    expect([project_dir, run.status, run.error]).toEqual([project_dir, "completed", null]);
    // The run's files are those it wrote, not targets of links.
    const texts = (await listEvents(harness.coordinator, run_id)).filter(
      ({ type }) => type === "tool_result" || type === "system",
    );
    expect(await listFilePaths(harness.coordinator, run_id), `${project_dir}: ${JSON.stringify(texts)}`).toEqual(
      project_dir?.includes("/gemini/") ? ["done.txt"] : ["done.txt", "shell.txt"],
    );
  }
  expect(marks()).toEqual([]);
  expect(trap.came()).toBe(0);
  expect(JSON.stringify(harness.model.requests.map(({ body }) => body))).not.toContain(canary);
  expect(JSON.stringify(harness.model.requests.map(({ headers }) => headers))).not.toContain("planted");
  expect(readFileSync(config, "utf8")).toBe(configBefore);
});

test("the same traps catch an agent that trusts the repository", async () => {
  const { harness, plantRepository, marks } = await setUp();
  await Promise.all(
    clientNames.map(async (client) => {
      const agent = { type: "autonomous", executor: client, demands: { executor_type: client } };
      await harness.coordinator.call("PUT", `/agents/trusting-${client}`, { ...agent, trust_project_settings: true });
      const plantedKinds: Kind[] = client === "codex" ? ["commands", "words"] : ["commands"];
      const run = await request(harness, `trusting-${client}`, client, plantRepository(client, plantedKinds));
      await waitForRunEnd(harness.coordinator, run.run_id);
    }),
  );
  const activeTraps = ["claude-hooks", "claude-servers", "codex-servers", "gemini-hooks", "gemini-servers"];
  expect(marks()).toEqual(expect.arrayContaining(activeTraps.map((name) => `${name.replace(/-.*/, "")}.${name}`)));
  expect(JSON.stringify(harness.model.requests.map(({ body }) => body))).toContain(canary);
});
