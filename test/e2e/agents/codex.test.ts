import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { RunEvent } from "../../../src/model/event.ts";
import type { Script } from "../../model-server/script.ts";
import type { Received } from "../../model-server/server.ts";
import { type AgentHarness, startAgentHarness, shareAgentHarness } from "./harness.ts";

const clients = ["codex"] as const;
const usage = { input_tokens: 100, output_tokens: 5 };
const write = { tool: { name: "write_file", input: { path: "hello.txt", content: "hi\n" } }, usage };
const script: Script = [
  { when: "create file hello.txt with hi", turns: [write, { text: "Done, hello.txt is there.", usage }] },
  { when: "remember the word heron", turns: [{ text: "I will remember it.", usage }] },
  { when: "which word", turns: [{ text: "It was heron.", usage }] },
  { when: "refuse the key", turns: [{ error: { status: 401, message: "Incorrect API key provided" } }] },
  {
    when: "add the secret",
    turns: [
      { tool: { name: "shell", input: { command: "git status --short > status.txt 2>&1" } } },
      { tool: { name: "shell", input: { command: "git hash-object --path=secret.txt secret.txt > added.txt 2>&1" } } },
      { tool: { name: "shell", input: { command: "echo done" } } },
      { text: "Tried it." },
    ],
  },
];

const filterByType = <T extends RunEvent["type"]>(events: readonly RunEvent[], type: T) =>
  events.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type);
const modelTexts = (request: Received | undefined): string =>
  request?.messages.map(({ text }) => text).join("\n") ?? "";

async function putAgent(
  harness: AgentHarness,
  name: string,
  changes: Readonly<Record<string, unknown>>,
): Promise<void> {
  const agent = { name, type: "autonomous", executor: "codex", demands: { executor_type: "codex" }, ...changes };
  const { status, json } = await harness.coordinator.call("PUT", `/agents/${name}`, agent);
  if (status >= 300) throw new Error(`PUT /agents/${name} was answered with ${status}: ${JSON.stringify(json)}`);
}

const getSharedHarness = shareAgentHarness({ script, clients: [...clients] });

test("a run writes a file, reports it, and records its usage", async () => {
  const harness = await getSharedHarness();
  const run = await harness.run("codex", "create file hello.txt with hi");
  expect(run).toMatchObject({ status: "completed", error: null, result_text: "Done, hello.txt is there." });
  expect(run.usage).toEqual({ input_tokens: 200, output_tokens: 10, cost_usd: null });
  expect(await harness.files(run)).toEqual({ "hello.txt": "hi\n" });
  const events = await harness.events(run);
  const [use] = filterByType(events, "tool_use");
  expect(use).toMatchObject({ name: "file_change" });
  expect(filterByType(events, "tool_result")).toMatchObject([{ tool_use_id: use?.tool_use_id, is_error: false }]);
  expect(filterByType(events, "system").find(({ subtype }) => subtype === "init")?.executor_session_id).toMatch(
    /^[0-9a-f-]{36}$/,
  );
  // The agent's system prompt reached the model, but not on a command line.
  expect(modelTexts(harness.model.requests[0])).toContain("You carry out one task");
  const [started] = filterByType(events, "execution_started");
  expect(JSON.stringify(started)).not.toContain("You carry out one task");
  expect(harness.model.requests.filter(({ answered }) => answered === "unknown")).toEqual([]);
});

test("resume and fork keep the history, even after a restart of the runner and with a per-session HOME", async () => {
  const harness = await startAgentHarness({ script, clients, profile: { home: "session" } });
  const first = await harness.run("codex", "remember the word heron");
  expect(first).toMatchObject({ status: "completed", error: null });
  await harness.restartRunner();
  let { session_id } = first;
  for (const mode of ["resume", "fork", "resume"] as const) {
    const run = await harness.run("codex", "which word", { mode, session_id });
    expect(run).toMatchObject({ status: "completed", error: null, result_text: "It was heron." });
    expect(run.usage).toEqual({ ...usage, cost_usd: null });
    const request = harness.model.requests.at(-1);
    expect(modelTexts(request)).toContain("remember the word heron");
    expect(modelTexts(request)).toContain("I will remember it.");
    expect(modelTexts(request).match(/You carry out one task/g)).toHaveLength(1);
    expect(run.session_id === session_id).toBe(mode === "resume");
    ({ session_id } = run);
  }
  // Nothing was written to the operator's HOME.
  expect(existsSync(join(harness.home, ".codex", "sessions"))).toBe(false);
});

test("a tool that the mode forbids is denied, reported, and fails the run", async () => {
  const harness = await getSharedHarness();
  await putAgent(harness, "careful", { permissions: { mode: "default" } });
  const run = await harness.run("careful", "create file hello.txt with hi");
  expect(run).toMatchObject({ status: "failed", reason: "permission_denied" });
  expect(await harness.files(run)).not.toHaveProperty("hello.txt");
  const events = await harness.events(run);
  expect(filterByType(events, "tool_use").map(({ name }) => name)).toEqual(["apply_patch"]);
  expect(filterByType(events, "system").map(({ subtype }) => subtype)).toContain("permission_denied");
});

test("a repository's own git filter neither runs nor passes content through unfiltered, and git keeps working", async () => {
  const keepsKeysAway = '\n[shell_environment_policy]\nignore_default_excludes = false\nexclude = ["*KEY*"]\n';
  const prepareConfig = (cwd: string) => appendFileSync(join(cwd, "home", ".codex", "config.toml"), keepsKeysAway);
  const harness = await startAgentHarness({ script, clients, before: prepareConfig });
  const repository = join(harness.cwd, "repository");
  const trap = join(harness.cwd, "trap");
  const git = (...args: string[]) => execFileSync("git", ["-C", repository, ...args]);
  execFileSync("git", ["init", "--quiet", repository]);
  writeFileSync(join(repository, "secret.txt"), "plain\n");
  writeFileSync(join(repository, ".gitattributes"), "secret.txt filter=crypt\n");
  git("config", "filter.crypt.clean", `touch ${trap}; tr a-z b-za`);
  const run = await harness.run("codex", "add the secret", { project_dir: repository });
  expect(run).toMatchObject({ status: "completed", error: null });
  expect(existsSync(trap)).toBe(false);
  expect(readFileSync(join(repository, "status.txt"), "utf8")).toContain("?? secret.txt");
  expect(readFileSync(join(repository, "added.txt"), "utf8")).toMatch(/clean filter 'crypt' failed/);
});

test("an agent with limits that codex does not enforce is refused before it starts", async () => {
  const harness = await getSharedHarness();
  await putAgent(harness, "limited", { max_turns: 2, budget: { cost_usd: 1 } });
  const run = await harness.run("limited", "create file hello.txt with hi");
  expect(run).toMatchObject({ status: "failed", reason: "refused" });
  expect(run.error).toContain("budget, max_turns");
  expect(harness.model.requests).toEqual([]);
});

test("a refused key fails with its reason", async () => {
  const harness = await getSharedHarness();
  expect(await harness.run("codex", "refuse the key")).toMatchObject({ status: "failed", reason: "provider_auth" });
});

test("a session in a project is reported as not found once its conversation is deleted", async () => {
  const harness = await getSharedHarness();
  const first = await harness.run("codex", "remember the word heron", { project_dir: harness.cwd });
  const config = readFileSync(join(harness.home, ".codex", "config.toml"));
  rmSync(join(harness.home, ".codex"), { recursive: true });
  mkdirSync(join(harness.home, ".codex"));
  writeFileSync(join(harness.home, ".codex", "config.toml"), config);
  const requestsBefore = harness.model.requests.length;
  const run = await harness.run("codex", "which word", { mode: "resume", session_id: first.session_id });
  expect(run).toMatchObject({ status: "failed", reason: "session_not_found" });
  expect(harness.model.requests).toHaveLength(requestsBefore);
});
