import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { RunEvent } from "../../../src/model/event.ts";
import type { Script } from "../../model-server/script.ts";
import type { Received } from "../../model-server/server.ts";
import { root } from "../drover.ts";
import { type AgentHarness, type AgentHarnessOptions, shareAgentHarness } from "./harness.ts";

const usage = { input_tokens: 100, output_tokens: 5 };
const content = { content: "hi\n" };
const shell = (command: string) => ({ tool: { name: "run_shell_command", input: { command }, exact: true as const } });
const script: Script = [
  {
    when: "create file hello.txt with hi",
    turns: [
      { tool: { name: "write_file", input: { path: "hello.txt", ...content } }, usage },
      { text: "Done, hello.txt is there.", usage },
    ],
  },
  {
    when: "write it though it is not offered",
    turns: [
      { tool: { name: "write_file", input: { file_path: "hello.txt", ...content }, exact: true } },
      { text: "It did not work." },
    ],
  },
  { when: "run a command", turns: [shell("echo hi > shell.txt"), { text: "Tried it." }] },
  { when: "print something", turns: [shell("echo hi"), { text: "It said hi." }] },
  { when: "remember the word heron", turns: [{ text: "I will remember it.", usage }] },
  { when: "which word", turns: [{ text: "It was heron.", usage }] },
];
const program = join(root, "test", "clients", "node_modules", ".bin", "gemini");
const getSharedHarness: AgentHarnessOptions = { script, clients: ["gemini"], env: { GEMINI_BIN: program } };

const filterByType = <T extends RunEvent["type"]>(events: readonly RunEvent[], type: T) =>
  events.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type);
const modelTexts = (request: Received | undefined): string =>
  request?.messages.map(({ text }) => text).join("\n") ?? "";

async function putAgent(
  harness: AgentHarness,
  name: string,
  changes: Readonly<Record<string, unknown>>,
): Promise<void> {
  const agent = { name, type: "autonomous", executor: "gemini", demands: { executor_type: "gemini" }, ...changes };
  const { status, json } = await harness.coordinator.call("PUT", `/agents/${name}`, agent);
  if (status >= 300) throw new Error(`PUT /agents/${name} was answered with ${status}: ${JSON.stringify(json)}`);
}

/** The operator's default configuration. */
function trustDirectories(cwd: string): void {
  const path = join(cwd, "home", ".gemini", "settings.json");
  const settings = JSON.parse(readFileSync(path, "utf8")) as { security: object };
  const security = { ...settings.security, folderTrust: { enabled: true } };
  writeFileSync(path, JSON.stringify({ ...settings, security }));
}

/** The default is one HOME per session. */
const getHarnessWithDefaultHome = shareAgentHarness({
  ...getSharedHarness,
  profile: { config: { allow_full_auto: true } },
  before: trustDirectories,
});
const getHarnessWithOperatorHome = shareAgentHarness({ ...getSharedHarness, profile: { home: "user" } });

test("a run writes a file, reports it, and records its usage", async () => {
  const harness = await getHarnessWithDefaultHome();
  const run = await harness.run("gemini", "create file hello.txt with hi");
  expect(run).toMatchObject({ status: "completed", error: null, result_text: "Done, hello.txt is there." });
  // Besides the two answers it also asked the model for a routing decision.
  expect(run.usage?.input_tokens).toBeGreaterThanOrEqual(200);
  expect(run.usage?.output_tokens).toBeGreaterThanOrEqual(10);
  expect(await harness.files(run)).toEqual({ "hello.txt": "hi\n" });
  const events = await harness.events(run);
  const [use] = filterByType(events, "tool_use");
  expect(use).toMatchObject({ name: "write_file", input: { file_path: "hello.txt" } });
  expect(filterByType(events, "tool_result")).toMatchObject([{ tool_use_id: use?.tool_use_id, is_error: false }]);
  expect(filterByType(events, "system").find(({ subtype }) => subtype === "init")?.executor_session_id).toMatch(
    /^[0-9a-f-]{36}$/,
  );
  expect(modelTexts(harness.model.requests[0])).toContain("You carry out one task");
  expect(JSON.stringify(filterByType(events, "execution_started"))).not.toContain("You carry out one task");
  expect(harness.model.requests.filter(({ answered }) => answered === "unknown")).toEqual([]);
});

test("resume keeps the history, even after a restart of the runner and with a per-session HOME, and fork is refused", async () => {
  const harness = await getHarnessWithDefaultHome();
  await putAgent(harness, "flash", { model: "gemini-2.5-flash" });
  const first = await harness.run("flash", "remember the word heron");
  expect(first).toMatchObject({ status: "completed", error: null });
  await harness.restartRunner();
  const run = await harness.run("flash", "which word", { mode: "resume", session_id: first.session_id });
  expect(run).toMatchObject({ status: "completed", error: null, result_text: "It was heron." });
  expect(run.usage).toEqual({ ...usage, cost_usd: null });
  const request = harness.model.requests.at(-1);
  expect(modelTexts(request)).toContain("remember the word heron");
  expect(modelTexts(request)).toContain("I will remember it.");
  expect(existsSync(join(harness.home, ".gemini", "tmp"))).toBe(false);
  const fork = await harness.run("flash", "which word", { mode: "fork", session_id: first.session_id });
  expect(fork).toMatchObject({ status: "failed", reason: "refused", error: expect.stringMatching(/fork/) as string });
});

test("a tool that the mode forbids is denied, reported, and fails the run, even if a policy in the repository allows it", async () => {
  const harness = await getHarnessWithDefaultHome();
  await putAgent(harness, "careful", { permissions: { mode: "default" } });
  const repository = join(harness.cwd, "repository");
  mkdirSync(join(repository, ".git"), { recursive: true });
  mkdirSync(join(repository, ".gemini", "policies"), { recursive: true });
  writeFileSync(
    join(repository, ".gemini", "policies", "all.toml"),
    '[[rule]]\ntoolName = "*"\ndecision = "allow"\npriority = 900\n',
  );
  for (const [agent, prompt, tool, project_dir] of [
    ["careful", "write it though it is not offered", "write_file", undefined],
    ["gemini", "run a command", "run_shell_command", repository],
  ] as const) {
    const run = await harness.run(agent, prompt, { project_dir });
    expect(run).toMatchObject({ status: "failed", reason: "permission_denied" });
    const permissionEvents = filterByType(await harness.events(run), "system").filter(
      ({ subtype }) => subtype === "permission_denied",
    );
    expect(permissionEvents).toMatchObject([{ data: { tool } }]);
  }
});

test("a tool allowed by name is used, and full auto may run anything", async () => {
  const harness = await getHarnessWithDefaultHome();
  await putAgent(harness, "typist", { permissions: { mode: "default", allowed_tools: ["run_shell_command(echo)"] } });
  await putAgent(harness, "free", { permissions: { mode: "bypassPermissions" } });
  const allowedRun = await harness.run("typist", "print something");
  expect(allowedRun).toMatchObject({ status: "completed", error: null });
  expect(filterByType(await harness.events(allowedRun), "tool_result")).toMatchObject([
    { is_error: false, output: "hi" },
  ]);
  const fullAutoRun = await harness.run("free", "run a command");
  expect(fullAutoRun).toMatchObject({ status: "completed", error: null });
  expect(await harness.files(fullAutoRun)).toMatchObject({ "shell.txt": "hi\n" });
  expect(filterByType(await harness.events(fullAutoRun), "system").map(({ subtype }) => subtype)).toContain(
    "full_auto",
  );
});

test("a session in a project is reported as not found once its conversation is deleted", async () => {
  const harness = await getHarnessWithOperatorHome();
  const first = await harness.run("gemini", "remember the word heron", { project_dir: harness.cwd });
  rmSync(join(harness.home, ".gemini", "tmp"), { recursive: true });
  const run = await harness.run("gemini", "which word", { mode: "resume", session_id: first.session_id });
  expect(run).toMatchObject({ status: "failed", reason: "session_not_found" });
});

test("with the operator's own HOME, folder trust must be off, and the run says so", async () => {
  const harness = await getHarnessWithOperatorHome();
  trustDirectories(harness.cwd);
  const run = await harness.run("gemini", "remember the word heron");
  expect(run).toMatchObject({
    status: "failed",
    reason: "refused",
    error: expect.stringMatching(/folderTrust/) as string,
  });
});
