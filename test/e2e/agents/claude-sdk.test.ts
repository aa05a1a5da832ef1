import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunEvent } from "../../../src/model/event.ts";
import type { Run } from "../../../src/model/run.ts";
import { readPage } from "../../docs/page.ts";
import { type ModelServer, startModelServer } from "../../model-server/server.ts";
import { drover, createDirectory, root } from "../drover.ts";
import { startCommand, runToEnd, startCoordinator, type CoordinatorProcess } from "../coordinator-process.ts";
import { listEvents, show, submit } from "./runs.ts";

const page = readPage("docs/claude-sdk.md");
/** The agents shown on the page. */
const agents = page.blocks.flatMap(({ file, text, isHidden }) =>
  file?.startsWith("agents/") && !isHidden ? [{ path: file, text }] : [],
);

let model: ModelServer;
let coordinator: CoordinatorProcess;
let cwd: string;

beforeAll(async () => {
  model = await startModelServer([
    {
      when: "create file hello.txt with hi",
      turns: [
        { text: "I will.", tool: { name: "write_file", input: { path: "hello.txt", content: "hi" } } },
        { text: "hello.txt is there." },
      ],
    },
    {
      when: "take a note",
      turns: [{ tool: { name: "mcp__notes__change", input: { word: "sheep" }, exact: true } }, { text: "Noted." }],
    },
    { when: "what did I ask for first?", turns: [{ text: "A file." }] },
    { when: "and in another branch?", turns: [{ text: "The same file." }] },
    { when: "Continue from where you left off.", turns: [{ text: "I went on." }] },
  ]);
  cwd = createDirectory(undefined, "file");
  for (const { path, text } of agents) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
  mkdirSync(join(cwd, "profiles"));
  const allow_env = ["NODE", "NOTES_SERVER", "NOTES_TOKEN"];
  const profile = { type: "claude-sdk", agents_dir: "./agents", allow_env, isolation: "pid" };
  writeFileSync(join(cwd, "profiles", "claude-sdk.json"), JSON.stringify(profile));
  symlinkSync(join(root, "test", "clients", "node_modules"), join(cwd, "node_modules"));
  coordinator = await startCoordinator(cwd, {}, "file");
  await offer();
});
afterAll(() => model.stop());

async function offer(): Promise<void> {
  const home = join(cwd, "home");
  mkdirSync(home);
  const env = {
    HOME: home,
    DROVER_STATE_DIR: join(cwd, "runner"),
    DROVER_API_URL: coordinator.url,
    DROVER_API_KEY: coordinator.token,
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: "sk-ant-scripted",
    CLAUDE_CODE_MAX_RETRIES: "0",
    NODE: process.execPath,
    NOTES_SERVER: join(root, "test", "fixtures", "mcp", "server.mjs"),
    NOTES_TOKEN: "t",
  };
  await startCommand(["runner", "-x", "claude-sdk"], { cwd, env, ready: /^Offers /m, lifetime: "file" });
}

const run = (agent_name: string, prompt: string, changes = {}): Promise<Run> =>
  runToEnd(coordinator, { agent_name, prompt, ...changes });
const files = async ({ run_id }: Run): Promise<string[]> =>
  (await coordinator.call<{ items: { path: string }[] }>("GET", `/runs/${run_id}/files`)).json.items.map(
    ({ path }) => path,
  );
const modelTexts = (): string =>
  JSON.stringify(model.requests.at(-1)!.messages.filter(({ role }) => role !== "system"));

test("without the package, drover doctor prints the install command and everything else works", async () => {
  const directoryWithoutSdk = createDirectory();
  const env = { DROVER_STATE_DIR: join(directoryWithoutSdk, "state") };
  const failedRun = await drover(["run", "claude-sdk", "--prompt", "x"], { cwd: directoryWithoutSdk, env });
  expect(failedRun.code).toBe(2);
  expect(failedRun.stderr).toMatch(/not available.*drover doctor for details.*claude-sdk/);
  const sdk = async () => {
    const { stdout } = await drover(["doctor", "--json"], { cwd: directoryWithoutSdk, env });
    return (JSON.parse(stdout) as { clients: Record<string, object> }).clients["claude-sdk"];
  };
  const install = /npm install [^\s`]+/.exec(page.text)![0];
  expect(await sdk()).toMatchObject({ found: false, next: expect.stringContaining(install) as string });
  expect(await drover(["run", "echo", "--message", "hi"], { cwd: directoryWithoutSdk, env })).toMatchObject({
    code: 0,
  });

  mkdirSync(join(directoryWithoutSdk, "profiles"));
  writeFileSync(join(directoryWithoutSdk, "profiles", "claude-sdk.json"), JSON.stringify({ type: "claude-sdk" }));
  symlinkSync(join(root, "test", "clients", "node_modules"), join(directoryWithoutSdk, "node_modules"));
  expect(await sdk()).toMatchObject({ found: true, version: install.split("@").at(-1) });
});

test("the agents of docs/claude-sdk.md behave in each mode as the page says", async () => {
  expect(agents.length).toBe(5);
  const runAll = (names: string[]) =>
    Promise.all(names.map(async (name) => ({ name, run: await run(name, "create file hello.txt with hi") })));
  for (const { name, run: finishedRun } of await runAll(["writer", "free"])) {
    expect({ name, status: finishedRun.status, text: finishedRun.result_text }).toEqual({
      name,
      status: "completed",
      text: "hello.txt is there.",
    });
    expect(await files(finishedRun)).toEqual(["hello.txt"]);
  }
  for (const { name, run: finishedRun } of await runAll(["careful", "planner"])) {
    expect({ name, reason: finishedRun.reason }).toEqual({ name, reason: "permission_denied" });
    expect(await files(finishedRun)).toEqual([]);
  }
  const noted = await run("noter", "take a note");
  expect(noted).toMatchObject({ status: "completed", result_text: "Noted.", summary: "Noted." });
  const events = await listEvents(coordinator, noted.run_id);
  expect(events).toContainEqual(expect.objectContaining({ type: "tool_result", output: "changed sheep" }));
  expect(events.filter((event) => event.type === "error")).toMatchObject([
    { code: "mcp_server_failed", message: expect.stringContaining("tracker") as string },
  ]);
});

test("a run's log has every event of the page's table, each with its original message", async () => {
  const finishedRun = await run("writer", "create file hello.txt with hi");
  const events = await listEvents(coordinator, finishedRun.run_id);
  const of = (type: RunEvent["type"], subtype?: string): RunEvent[] =>
    events.filter(
      (event) => event.type === type && (subtype === undefined || ("subtype" in event && event.subtype === subtype)),
    );
  expect(of("system", "init")).toMatchObject([
    { executor_session_id: finishedRun.session_id, raw: { type: "system" } },
  ]);
  expect(of("tool_use")).toMatchObject([{ name: "Write", raw: { type: "assistant" } }]);
  expect(of("tool_result")).toMatchObject([{ is_error: false, raw: { type: "user" } }]);
  expect(of("system", "result")).toMatchObject([{ raw: { type: "result", subtype: "success" } }]);
  expect(of("execution_started").length).toBe(1);
  expect(events.at(-1)).toMatchObject({ type: "result", status: "completed" });
  expect(finishedRun.usage!.cost_usd).toBeGreaterThan(0);
});

test("the page's commands resume and fork sessions", async () => {
  const env = { DROVER_API_URL: coordinator.url, DROVER_API_KEY: coordinator.token };
  const first = await run("writer", "create file hello.txt with hi");
  const resumed = await drover(["sessions", "resume", first.session_id!, "--prompt", "what did I ask for first?"], {
    cwd,
    env,
  });
  expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining("A file.") as string });
  expect(modelTexts()).toContain("create file hello.txt with hi");
  const forked = await drover(["sessions", "fork", first.session_id!, "--prompt", "and in another branch?"], {
    cwd,
    env,
  });
  expect(forked).toMatchObject({ code: 0, stdout: expect.stringContaining("The same file.") as string });
  expect(modelTexts()).toContain("A file.");
});

test("a person can answer a question, even after the run was parked", async () => {
  for (const park_after_seconds of [600, 0.05]) {
    const agent = { type: "autonomous", executor: "claude-sdk", permissions: { mode: "default" }, park_after_seconds };
    const put = await coordinator.call("PUT", "/agents/asking", { ...agent, demands: { executor_type: "claude-sdk" } });
    expect(put.status).toBe(200);
    const { run_id } = await submit(coordinator, {
      agent_name: "asking",
      prompt: "create file hello.txt with hi",
      attended: true,
    });
    const expectedStatus = park_after_seconds > 1 ? "waiting" : "parked";
    await expect.poll(async () => (await show(coordinator, run_id)).status).toBe(expectedStatus);
    const { json } = await coordinator.call<{ items: { request_id: string; tool: string }[] }>("GET", "/questions");
    expect(json.items).toMatchObject([{ run_id, tool: "Write", effect: "edit" }]);
    const requestsBefore = model.requests.length;
    const path = `/runs/${run_id}/permissions/${json.items[0]!.request_id}`;
    expect((await coordinator.call("POST", path, { decision: "allow" })).status).toBe(200);
    await expect.poll(async () => (await show(coordinator, run_id)).status).toBe("completed");
    expect(await files(await show(coordinator, run_id))).toEqual(["hello.txt"]);
    expect(model.requests.length).toBe(requestsBefore + 1);
  }
});
