import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Run } from "../../../src/model/run.ts";
import type { Script } from "../../model-server/script.ts";
import { startAgentHarness, shareAgentHarness } from "./harness.ts";

const script: Script = [
  {
    when: "create file hello.txt with hi",
    turns: [
      { text: "I will write it.", tool: { name: "write_file", input: { path: "hello.txt", content: "hi" } } },
      { text: "hello.txt is there." },
    ],
  },
  { when: "what did I ask for first?", turns: [{ text: "A file." }] },
  { when: "and in another branch?", turns: [{ text: "The same file." }] },
  {
    when: "fetch the page",
    turns: [
      { tool: { name: "shell", input: { command: "curl -s http://127.0.0.1:1/ -o page.html" } } },
      { text: "I could not fetch it." },
    ],
  },
  { when: "refuse the key", turns: [{ error: { status: 401, type: "authentication_error", message: "bad key" } }] },
  {
    when: "wait for it",
    turns: [
      { tool: { name: "shell", input: { command: "echo begun > begun.txt; until test -e never; do sleep 1; done" } } },
    ],
  },
  { when: "never end", turns: [{ tool: { name: "shell", input: { command: "echo again" } } }] },
];

const conversation = (messages: readonly { role: string; text: string }[]): string =>
  messages
    .filter(({ role }) => role !== "system")
    .map(({ text }) => text)
    .join("\n");

const getSharedHarness = shareAgentHarness({
  script,
  clients: ["claude"],
  profile: { home: "user", config: { allow_full_auto: true } },
});

test("a file that claude writes in its default mode is kept, and the log shows the tool call", async () => {
  const harness = await getSharedHarness();
  const run = await harness.run("claude", "create file hello.txt with hi");
  expect(run).toMatchObject({ status: "completed", result_text: "hello.txt is there.", exit_code: 0 });
  expect(run.usage).toMatchObject({ cost_usd: expect.any(Number) as number });
  expect(run.usage!.input_tokens).toBeGreaterThan(0);
  expect(run.usage!.output_tokens).toBeGreaterThan(0);
  expect(await harness.files(run)).toEqual({ "hello.txt": "hi" });
  const events = await harness.events(run);
  const use = events.find(({ type }) => type === "tool_use");
  expect(use).toMatchObject({ name: "Write", input: { content: "hi" } });
  expect(events.find(({ type }) => type === "tool_result")).toMatchObject({
    tool_use_id: use?.type === "tool_use" ? use.tool_use_id : "",
    is_error: false,
  });
  expect(events).toContainEqual({ type: "assistant", text: "I will write it." });
  expect(harness.model.requests.filter(({ answered }) => answered === "unknown")).toEqual([]);
});

test("resume and fork keep the history, even across a restart of the runner and with a per-session HOME", async () => {
  const harness = await startAgentHarness({ script, clients: ["claude"], profile: { home: "session" } });
  const first = await harness.run("claude", "create file hello.txt with hi");
  const firstExecutorSession = await getExecutorSession(harness, first.session_id!);
  await harness.restartRunner();
  const { session_id } = first;
  const second = await harness.run("claude", "what did I ask for first?", { mode: "resume", session_id });
  expect(second).toMatchObject({ status: "completed", result_text: "A file.", session_id });
  expect(conversation(harness.model.requests.at(-1)!.messages)).toContain("create file hello.txt with hi");

  const forked = await harness.run("claude", "and in another branch?", { mode: "fork", session_id });
  expect(forked).toMatchObject({ status: "completed", result_text: "The same file." });
  expect(forked.session_id).not.toBe(session_id);
  const modelTexts = conversation(harness.model.requests.at(-1)!.messages);
  expect(modelTexts).toContain("create file hello.txt with hi");
  expect(modelTexts).toContain("A file.");
  expect(await getExecutorSession(harness, forked.session_id!)).not.toBe(firstExecutorSession);

  const thirdRun = await harness.run("claude", "what did I ask for first?", { mode: "resume", session_id });
  expect(thirdRun.status).toBe("completed");
  expect(conversation(harness.model.requests.at(-1)!.messages)).not.toContain("another branch");
  // Each turn is charged separately, although claude reports the session's total.
  expect(thirdRun.usage!.cost_usd).toBeLessThan(first.usage!.cost_usd! * 2);
});

async function getExecutorSession(
  harness: Awaited<ReturnType<typeof startAgentHarness>>,
  session_id: string,
): Promise<string | null> {
  const { json } = await harness.coordinator.call<{ executor_session_id: string | null }>(
    "GET",
    `/sessions/${session_id}`,
  );
  return json.executor_session_id;
}

test("a run fails if claude gives up after a denied tool call", async () => {
  const harness = await getSharedHarness();
  const run = await harness.run("claude", "fetch the page");
  expect(run).toMatchObject({ status: "failed", reason: "permission_denied", result_text: "I could not fetch it." });
  expect(await harness.events(run)).toContainEqual(
    expect.objectContaining({ type: "system", subtype: "permission_denied" }),
  );
});

test("a run with a rejected key or too many turns fails with that reason", async () => {
  const harness = await getSharedHarness();
  expect(await harness.run("claude", "refuse the key")).toMatchObject({ status: "failed", reason: "provider_auth" });
  const put = await harness.coordinator.call("PUT", "/agents/short", {
    type: "autonomous",
    executor: "claude",
    max_turns: 2,
    permissions: { mode: "acceptEdits", allowed_tools: ["Bash"] },
    demands: { executor_type: "claude" },
  });
  expect(put).toMatchObject({ status: 200 });
  expect(await harness.run("short", "never end")).toMatchObject({ status: "failed", reason: "max_turns" });
});

test("a run stopped in the middle of a tool leaves no process, and its session continues in the operator's HOME, even after a restart", async () => {
  const harness = await getSharedHarness();
  const agent = { type: "autonomous", executor: "claude", permissions: { mode: "bypassPermissions" } };
  await harness.coordinator.call("PUT", "/agents/free", { ...agent, demands: { executor_type: "claude" } });
  const { json } = await harness.coordinator.call<Run>("POST", "/runs", { agent_name: "free", prompt: "wait for it" });
  await expect.poll(() => listProcessesOf(json.run_id)).toContain("sleep");
  await harness.coordinator.call("POST", `/runs/${json.run_id}/stop`);
  const stoppedRun = await waitForEnd(harness, json.run_id);
  expect(stoppedRun.status).toBe("cancelled");
  expect(listProcessesOf(json.run_id)).toEqual([]);
  expect(await harness.events(json)).toContainEqual(expect.objectContaining({ type: "system", subtype: "full_auto" }));
  const { session_id } = stoppedRun;
  await harness.restartRunner();
  for (const mode of ["resume", "fork"]) {
    const next = await harness.run("free", "what did I ask for first?", { mode, session_id });
    expect(next).toMatchObject({ status: "completed", result_text: "A file." });
    expect(next.session_id === session_id).toBe(mode === "resume");
    expect(conversation(harness.model.requests.at(-1)!.messages)).toContain("wait for it");
  }
});

async function waitForEnd(
  { coordinator }: Awaited<ReturnType<typeof startAgentHarness>>,
  run_id: string,
): Promise<Run> {
  const getRun = async () => (await coordinator.call<Run>("GET", `/runs/${run_id}`)).json;
  await expect.poll(async () => (await getRun()).finished_at).not.toBeNull();
  return getRun();
}

/** The names of processes with this run's id in their environment. */
function listProcessesOf(run_id: string): string[] {
  const read = (pid: string, file: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, "utf8");
    } catch {
      return ""; // It has exited in the meantime.
    }
  };
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid) && read(pid, "environ").includes(`DROVER_RUN_ID=${run_id}`))
    .map((pid) => read(pid, "comm").trim());
}
