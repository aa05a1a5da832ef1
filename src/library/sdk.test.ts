import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { logsDirectory, recordDirectory } from "../model/state-layout.ts";
import { startTestCoordinator } from "../../test/coordinator.ts";
import type { Script } from "../../test/model-server/script.ts";
import { startModelServer } from "../../test/model-server/server.ts";
import {
  AgentRunner,
  type AgentQuestion,
  type Decision,
  type ResolvedAgentConfig,
  runAgent,
  RunnerError,
  type RunnerOptionsWithCallbacks,
  SDKError,
  type SDKMessage,
  SDKNotFoundError,
} from "../index.ts";
import type { StoredEvent } from "../model/event.ts";
import type { Run } from "../model/run.ts";
import { openStore } from "../record/open.ts";
import { openProfiles } from "../compose/open-profiles.ts";
import { startRunner } from "../runner.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).toReversed()) await cleanUp();
});

/** The real Agent SDK is installed here. */
const clients = join(import.meta.dirname, "../../test/clients");

/** Runs the real SDK in this process against a scripted model. */
async function createProject(script: Script) {
  const directory = mkdtempSync(join(tmpdir(), "drover-library-"));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  const server = await startModelServer(script);
  cleanups.push(() => server.stop());
  for (const name of ["home", "work"]) mkdirSync(join(directory, name));
  const stateDir = join(directory, "state");
  const env = {
    PATH: process.env["PATH"],
    HOME: join(directory, "home"),
    ANTHROPIC_BASE_URL: server.url,
    ANTHROPIC_API_KEY: "sk-ant-scripted",
    CLAUDE_CODE_MAX_RETRIES: "0",
  };
  const agent: ResolvedAgentConfig = { name: "coder", working_directory: join(directory, "work") };
  const options = { env, cwd: clients };
  const runner = new AgentRunner(stateDir);
  async function record<T>(read: (store: Awaited<ReturnType<typeof openStore>>) => Promise<T>): Promise<T> {
    const store = await openStore({
      directory: recordDirectory(stateDir),
      now: () => new Date(),
      createIfMissing: false,
    });
    try {
      return await read(store);
    } finally {
      await store.close();
    }
  }
  return {
    server,
    stateDir,
    agent,
    runner,
    options,
    work: join(directory, "work"),
    run: (overrides: Partial<RunnerOptionsWithCallbacks> = {}) =>
      runAgent({ agent, prompt: "Do it", stateDir, ...options, ...overrides }),
    record,
    /** Returns a session's conversation as stored in the record and in Claude Code's own file. */
    conversation: (session_id: string): Promise<Buffer[]> =>
      record(async ({ connection }) => {
        const stored = connection.sql("select bytes from session_states where session_id = ?").all(session_id);
        const files = readdirSync(env.HOME, { recursive: true, encoding: "utf8" }).filter((path) =>
          path.endsWith(`${session_id}.jsonl`),
        );
        return [
          ...stored.map(({ bytes }) => Buffer.from(bytes as Uint8Array)), // The column contains bytes.
          ...files.map((path) => readFileSync(join(env.HOME, path))),
        ];
      }),
  };
}

const listEvents = ({ record }: { record: Awaited<ReturnType<typeof createProject>>["record"] }, run_id: string) =>
  record(async ({ read }): Promise<StoredEvent["event"][]> =>
    (await read.events(run_id, 0, 1000)).map(({ event }) => event),
  );

/** A script whose turns write a.txt and then answer. */
const writeScript: Script = [
  {
    when: "Do it",
    turns: [{ tool: { name: "write_file", input: { path: "a.txt", content: "made" } } }, { text: "It is made." }],
  },
];
const createAnswerScript = (text: string): Script => [{ when: /./, turns: [{ text }] }];

describe("runAgent on the Agent SDK", () => {
  it("passes each SDK message to onMessage as it arrives, and keeps all of them in the log", async () => {
    const opened = await createProject(writeScript);
    const received: { message: SDKMessage; isLogged: boolean }[] = [];
    let runAtFirstMessage: Run | null = null;
    const result = await opened.run({
      async onMessage(message) {
        const logs = logsDirectory(recordDirectory(opened.stateDir));
        const lines = readdirSync(logs).map((name) => readFileSync(join(logs, name), "utf8"));
        received.push({ message, isLogged: lines.join("").includes(String(message["uuid"])) });
        runAtFirstMessage ??= await opened.record(async ({ read }) => {
          const [only] = await read.runs({}, { limit: 2 });
          return read.run(only!.run_id);
        });
      },
    });
    expect(runAtFirstMessage).toMatchObject({ run_id: result.jobId, status: "running", session_id: result.sessionId });
    expect(result, String(result.error)).toMatchObject({ success: true, summary: "It is made." });
    expect(readFileSync(join(opened.work, "a.txt"), "utf8")).toBe("made");
    const types = received.map(({ message }) => message.type);
    expect(types[0]).toBe("system");
    expect(types).toContain("assistant");
    expect(types).toContain("user");
    expect(types.at(-1)).toBe("result");
    // Each message is in the log on disk before the caller gets it.
    expect(received.filter(({ isLogged }) => !isLogged)).toEqual([]);
    const init = received[0]!.message;
    expect(init).toMatchObject({ subtype: "init", session_id: result.sessionId });
    const events = await listEvents(opened, result.jobId);
    const rawMessages = events.flatMap((event) =>
      "raw" in event && event.raw !== undefined ? [event.raw as SDKMessage] : [],
    );
    expect(rawMessages.map(({ type }) => type)).toEqual(types);
    expect(events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(["system", "assistant", "tool_use", "tool_result", "usage", "result"]),
    );
    await opened.record(async ({ read }) => {
      expect(await read.session(result.sessionId!)).toMatchObject({
        agent_name: "coder",
        run_count: 1,
        executor_session_id: result.sessionId,
      });
    });
  });

  it("resumes a session with its whole history, and forks it without changing the original", async () => {
    const opened = await createProject(({ messages }) => ({
      text: `answer ${messages.filter(({ role }) => role === "assistant").length + 1}`,
    }));
    const first = await opened.run({ prompt: "the first prompt" });
    const second = await opened.runner.resume(first.sessionId!, opened.agent, "the second prompt", opened.options);
    expect(second, String(second.error)).toMatchObject({
      success: true,
      summary: "answer 2",
      sessionId: first.sessionId,
    });
    expect(second.run).toMatchObject({ mode: "resume", trigger_type: "manual" });
    const readTranscript = (): Promise<Buffer[]> => opened.conversation(first.sessionId!);
    const transcriptBeforeFork = await readTranscript();
    expect(transcriptBeforeFork.map((copy) => copy.includes("the second prompt"))).toEqual([true, true]);
    const forked = await opened.runner.fork(first.sessionId!, opened.agent, "another way", opened.options);
    expect(await readTranscript()).toEqual(transcriptBeforeFork);
    expect(forked, String(forked.error)).toMatchObject({ success: true, summary: "answer 3" });
    expect(forked.sessionId).not.toBe(first.sessionId);
    expect(forked.run).toMatchObject({ trigger_type: "fork", forked_from: first.sessionId });
    const third = await opened.runner.resume(first.sessionId!, opened.agent, "the third prompt", opened.options);
    expect(third.summary).toBe("answer 3");
    const lastRequest = JSON.stringify(opened.server.requests.at(-1));
    expect(lastRequest).toContain("the second prompt");
    expect(lastRequest).not.toContain("another way");
    await opened.record(async ({ read }) => {
      expect(await read.session(first.sessionId!)).toMatchObject({ run_count: 3 });
    });
  });

  it.each([
    ["a key that is refused", 401, "provider_auth"],
    ["a service that fails", 500, "provider_network"],
  ])("returns %s as an SDKError with the SDK's message, on a run that failed", async (_, status, reason) => {
    const opened = await createProject([{ when: /./, turns: [{ error: { status, message: "no luck" } }] }]);
    const { success, error, jobId, run } = await opened.run();
    expect([success, run?.status, run?.reason], String(error)).toEqual([false, "failed", reason]);
    expect(error).toBeInstanceOf(SDKError);
    expect(error).toBeInstanceOf(RunnerError);
    expect(error).toMatchObject({ jobId, agentName: "coder", sdkMessage: { type: "result", is_error: true } });
    expect(error!.message).toContain(jobId);
    expect((await listEvents(opened, jobId)).map(({ type }) => type)).toContain("error");
  });

  it("continues when onMessage throws, and reports the error", async () => {
    const opened = await createProject(createAnswerScript("done"));
    let calls = 0;
    const result = await opened.run({
      onMessage() {
        calls += 1;
        if (calls === 1) throw new Error("my own bug");
      },
    });
    expect(result).toMatchObject({ success: true, summary: "done" });
    expect(calls).toBeGreaterThan(2);
    expect(result.callbackErrors?.map(({ message }) => message)).toEqual(["my own bug"]);
  });

  it.each<[string, Decision | (() => never), string | null, string]>([
    ["allow", { decision: "allow" }, "made", "completed"],
    ["allow with edited input", { decision: "allow", input: "edited" }, "edited", "completed"],
    ["deny", { decision: "deny", message: "not that one" }, null, "completed"],
    ["stop", { decision: "stop" }, null, "cancelled"],
    [
      "a callback that throws",
      () => {
        throw new Error("no idea");
      },
      null,
      "completed",
    ],
    ["no decision", undefined as never, null, "completed"],
  ])("asks onQuestion before a tool is used: %s", async (_, decision, content, status) => {
    const opened = await createProject(writeScript);
    const questions: AgentQuestion[] = [];
    const result = await opened.run({
      agent: { ...opened.agent, permissions: { mode: "default" } },
      onQuestion(question) {
        questions.push(question);
        if (typeof decision === "function") return decision();
        if (decision?.decision !== "allow" || decision.input === undefined) return decision;
        return { decision: "allow", input: { ...(question.input as object), content: "edited" } };
      },
    });
    expect(questions).toMatchObject([{ jobId: result.jobId, tool: "Write", agentName: "coder", effect: "edit" }]);
    expect(result.run, String(result.error)).toMatchObject({ status: expect.any(String), attended: true });
    const file = join(opened.work, "a.txt");
    expect(existsSync(file) ? readFileSync(file, "utf8") : null).toBe(content);
    if (status === "completed" && content !== null) expect(result.success).toBe(true);
    if (status === "cancelled") expect(result.success).toBe(false);
    if (typeof decision === "function" || decision === undefined) expect(result.callbackErrors).toHaveLength(1);
  });

  it("calls the tools of an in-process MCP server", async () => {
    const sdk = (await import(join(clients, "node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs"))) as {
      createSdkMcpServer(options: object): { type: "sdk"; name: string; instance: object };
      tool(name: string, description: string, shape: object, run: (input: never) => Promise<object>): unknown;
    };
    const { z } = await import("zod");
    const add = sdk.tool(
      "add",
      "Adds",
      { a: z.number(), b: z.number() },
      async ({ a, b }: { a: number; b: number }) => ({
        content: [{ type: "text", text: `sum ${a + b}` }],
      }),
    );
    const opened = await createProject([
      {
        when: "Do it",
        turns: [{ tool: { name: "mcp__calc__add", input: { a: 2, b: 3 } } }, { text: "It is five." }],
      },
    ]);
    const result = await opened.run({
      agent: {
        ...opened.agent,
        permissions: { allowed_tools: ["mcp__calc__*"] },
        mcp_servers: { calc: sdk.createSdkMcpServer({ name: "calc", tools: [add] }) },
      },
    });
    expect(result, String(result.error)).toMatchObject({ success: true });
    expect(JSON.stringify(opened.server.requests.at(-1))).toContain("sum 5");
  });

  it("says what to install if the SDK is missing, and still runs agents that do not need it", async () => {
    const opened = await createProject(createAnswerScript("done"));
    const result = await opened.run({ cwd: opened.work });
    expect(result).toMatchObject({ success: false, run: { status: "failed", reason: "dependency_missing" } });
    expect(result.error).toBeInstanceOf(SDKNotFoundError);
    expect(result.error!.message).toContain("npm install @anthropic-ai/claude-agent-sdk");
    const other = await opened.run({ agent: { name: "say", command: "echo hello" }, cwd: opened.work });
    expect(other).toMatchObject({ success: true });
  });

  it("passes the same messages from the log through a coordinator, and accepts answers there", async () => {
    const opened = await createProject(writeScript);
    const coordinator = await startTestCoordinator();
    cleanups.push(coordinator.dispose);
    const env = { ...opened.options.env, DROVER_TRUST: dirname(opened.work) };
    const profiles = join(opened.work, "..", "profiles");
    mkdirSync(profiles);
    symlinkSync(join(clients, "node_modules"), join(opened.work, "..", "node_modules"));
    writeFileSync(join(profiles, "claude-sdk.json"), JSON.stringify({ type: "claude-sdk", project_roots: ["/"] }));
    const loaded = await openProfiles({ names: ["claude-sdk"], directories: [profiles], env, onNotice: expect.fail });
    cleanups.push(loaded.stop);
    const runner = await startRunner({
      port: coordinator.port,
      profiles: loaded.profiles,
      stateDirectory: join(opened.work, "..", "runner"),
      projectDir: opened.work,
      env,
      maxOutputKb: 1024,
      onNotice: () => undefined,
    });
    cleanups.push(runner.stop);
    const types: string[] = [];
    const questions: string[] = [];
    const result = await opened.run({
      coordinator: { url: coordinator.url, token: coordinator.adminToken },
      agent: { ...opened.agent, permissions: { mode: "default" } },
      onMessage: ({ type }) => void types.push(type),
      onQuestion({ tool }) {
        questions.push(tool);
        return { decision: "allow" };
      },
    });
    expect(result, String(result.error)).toMatchObject({ success: true, summary: "It is made." });
    expect(questions).toEqual(["Write"]);
    expect([types[0], types.at(-1)]).toEqual(["system", "result"]);
    expect(types).toContain("user");
    expect(existsSync(opened.stateDir)).toBe(false);
  });

  it("stops the SDK in the middle of a turn", async () => {
    const controller = new AbortController();
    const opened = await createProject([
      {
        when: "Do it",
        turns: [{ tool: { name: "shell", input: { command: "touch started; sleep 600" } } }, { text: "too late" }],
      },
    ]);
    const running = opened.run({
      agent: { ...opened.agent, permissions: { allowed_tools: ["Bash"] } },
      signal: controller.signal,
    });
    await expect.poll(() => existsSync(join(opened.work, "started"))).toBe(true);
    controller.abort();
    expect(await running).toMatchObject({ success: false, run: { status: "cancelled" } });
  });
});
