import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { recordDirectory } from "../model/state-layout.ts";
import { AgentRunner, type ResolvedAgentConfig, runAgent, RunnerError, SDKError, SessionError } from "../index.ts";
import { RequestError } from "../model/errors.ts";
import type { Run } from "../model/run.ts";
import { openStore } from "../record/open.ts";

const createdProjects: string[] = [];
afterAll(() => createdProjects.forEach((directory) => rmSync(directory, { recursive: true, force: true })));

/** Creates a state directory and an agent that answers with these turns. */
function createProject(turns: readonly unknown[] = [{ text: "It is done." }]) {
  const directory = mkdtempSync(join(tmpdir(), "drover-library-"));
  createdProjects.push(directory);
  const script = join(directory, "turns.json");
  writeFileSync(script, JSON.stringify({ turns }));
  const agent = { name: "helper", executor: "model", provider: "scripted", script } satisfies ResolvedAgentConfig;
  const stateDir = join(directory, "state");
  return { directory, stateDir, agent, runner: new AgentRunner(stateDir) };
}

async function listRuns(stateDir: string): Promise<Run[]> {
  const store = await openStore({
    directory: recordDirectory(stateDir),
    now: () => new Date(),
    createIfMissing: false,
  });
  try {
    const rows = await store.read.runs({}, { limit: 100 });
    return await Promise.all(rows.map(async ({ run_id }) => (await store.read.run(run_id))!));
  } finally {
    await store.close();
  }
}

const echo: ResolvedAgentConfig = { name: "say", command: "echo hello" };

describe("runAgent", () => {
  it("runs an agent until it finishes and returns its result", async () => {
    const { agent, stateDir } = createProject([{ text: `${"x".repeat(600)} done` }]);
    const result = await runAgent({ agent, prompt: "Do it", stateDir, triggerType: "schedule", schedule: "nightly" });
    expect(result).toMatchObject({ success: true, jobId: expect.any(String), sessionId: expect.any(String) });
    expect(result.error).toBeUndefined();
    expect(result.summary).toHaveLength(500);
    expect(result.durationSeconds).toBeGreaterThanOrEqual(0);
    const [run, ...others] = await listRuns(stateDir);
    expect(others).toEqual([]);
    expect(run).toMatchObject({
      run_id: result.jobId,
      session_id: result.sessionId,
      status: "completed",
      prompt: "Do it",
      trigger_type: "schedule",
      schedule: "nightly",
      agent_name: "helper",
    });
  });

  it("submits the run with the trigger type `manual` by default", async () => {
    const { stateDir } = createProject();
    const { run } = await runAgent({ agent: echo, prompt: "", stateDir });
    expect(run).toMatchObject({ trigger_type: "manual", schedule: null, result_text: "hello\n" });
  });

  it("needs a prompt unless the agent is a command", async () => {
    const { agent, stateDir } = createProject();
    expect(await runAgent({ agent: echo, stateDir })).toMatchObject({ success: true });
    await expect(runAgent({ agent, stateDir })).rejects.toMatchObject({ field: "prompt" });
  });

  it("returns a failed run with a RunnerError that names the run and the agent, and keeps the run", async () => {
    const { agent, stateDir } = createProject([{ error: { kind: "authentication", message: "no such key" } }]);
    const result = await runAgent({ agent, prompt: "Do it", stateDir });
    expect(result.success).toBe(false);
    expect(result.error).toBeInstanceOf(RunnerError);
    expect(result.error).not.toBeInstanceOf(SDKError);
    expect(result.error).toMatchObject({ name: "RunnerError", jobId: result.jobId, agentName: "helper" });
    expect(result.error!.message).toContain("provider_auth");
    expect(result.error!.message).toContain("no such key");
    expect(await listRuns(stateDir)).toMatchObject([
      { run_id: result.jobId, status: "failed", reason: "provider_auth" },
    ]);
  });

  it("stops the run when its signal is aborted, and refuses a signal that is already aborted", async () => {
    const { stateDir, directory } = createProject();
    const controller = new AbortController();
    const startedFile = join(directory, "started");
    const agent = { name: "slow", command: `sh -c 'touch ${startedFile}; sleep 600'` };
    const running = runAgent({ agent, prompt: "", stateDir, signal: controller.signal });
    await expect.poll(() => existsSync(startedFile)).toBe(true);
    controller.abort();
    const result = await running;
    expect(result).toMatchObject({ success: false, error: { name: "RunnerError" }, run: { status: "cancelled" } });
    await expect(runAgent({ agent, prompt: "", stateDir, signal: controller.signal })).rejects.toThrow("abort");
    expect(await listRuns(stateDir)).toHaveLength(1);
  });

  it("returns a parked run that only a person can resume, and leaves it parked", async () => {
    const tools = [{ name: "file.list", input: { path: "." } }];
    const { agent, stateDir } = createProject([{ tools }, { tools }, { text: "never said" }]);
    const result = await runAgent({ agent: { ...agent, budget: { turns: 1 } }, prompt: "x", stateDir });
    expect(result).toMatchObject({ success: false, error: { name: "RunnerError" }, run: { parked_why: "budget" } });
    expect(result.error!.message).toContain(`drover runs resume ${result.jobId}`);
    expect(await listRuns(stateDir)).toMatchObject([{ run_id: result.jobId, status: "parked" }]);
  });

  it("returns no summary for an agent without output, and never splits a character of a summary", async () => {
    const { agent, stateDir } = createProject([{ text: `${"x".repeat(499)}\u{1f411}` }]);
    expect((await runAgent({ agent, prompt: "x", stateDir })).summary).toBe("x".repeat(499));
    const silent = await runAgent({ agent: { name: "silent", command: "true" }, prompt: "", stateDir });
    expect(silent).toMatchObject({ success: true });
    expect(silent).not.toHaveProperty("summary");
  });

  const createAskingTurns = (directory: string) => [
    { tools: [{ name: "command.run", input: { command: `echo made >${directory}/made` } }] },
    { text: "Thank you." },
  ];

  it("denies a call whose edited input does not match the tool, and reports it to the caller", async () => {
    const { agent, stateDir, directory } = createProject();
    writeFileSync(agent.script, JSON.stringify({ turns: createAskingTurns(directory) }));
    const questions: unknown[] = [];
    const result = await runAgent({
      agent,
      prompt: "x",
      stateDir,
      onQuestion({ tool, inputSchema }) {
        questions.push([tool, inputSchema?.["required"]]);
        return { decision: "allow", input: { command: 7 } };
      },
    });
    expect(questions).toEqual([["command.run", ["command"]]]);
    expect(result.callbackErrors).toMatchObject([
      { message: "The edited input does not match the schema of the tool command.run.", field: "body.input.command" },
    ]);
    expect(existsSync(join(directory, "made"))).toBe(false);
    expect(result.run).toMatchObject({ result_text: "Thank you." });
  });

  it("uses the answer of another user who answers before the caller", async () => {
    const { agent, stateDir, directory } = createProject();
    writeFileSync(agent.script, JSON.stringify({ turns: createAskingTurns(directory) }));
    const result = await runAgent({
      agent,
      prompt: "x",
      stateDir,
      async onQuestion({ jobId, requestId }) {
        const store = await openStore({
          directory: recordDirectory(stateDir),
          now: () => new Date(),
          createIfMissing: false,
        });
        const answer = { decision: "allow" } as const;
        await store.apply([{ op: "answer_question", run_id: jobId, request_id: requestId, answer, by: "bob" }]);
        await store.close();
        return { decision: "deny" };
      },
    });
    expect(result, String(result.error)).toMatchObject({ success: true, summary: "Thank you." });
    expect(result).not.toHaveProperty("callbackErrors");
    expect(readFileSync(join(directory, "made"), "utf8")).toBe("made\n");
  });

  it("works in the agent's working_directory", async () => {
    const { directory, stateDir } = createProject();
    const agent = { name: "maker", command: "sh -c 'echo made > made.txt'", working_directory: directory };
    expect(await runAgent({ agent, prompt: "", stateDir })).toMatchObject({ success: true });
    expect(readFileSync(join(directory, "made.txt"), "utf8")).toBe("made\n");
  });

  it("runs an agent of a fleet file, and lists the file's agents if the name is missing or unknown", async () => {
    const { directory, stateDir } = createProject();
    const path = join(directory, "fleet.yaml");
    writeFileSync(
      path,
      "defaults: { executor: model, provider: scripted, script: turns.json }\nagents: [{ name: one }, { name: two }]\n",
    );
    expect(await runAgent({ agent: { path, name: "two" }, prompt: "x", stateDir })).toMatchObject({
      success: true,
      summary: "It is done.",
      run: { agent_name: "two" },
    });
    for (const name of [undefined, "twoo"])
      await expect(runAgent({ agent: { path, ...(name && { name }) }, prompt: "x", stateDir })).rejects.toMatchObject({
        field: "agent.name",
        next: "Set agent.name to one of: one, two.",
      });
  });

  it("expands any variable of the caller, and rejects an unset one before it creates a run", async () => {
    const { agent, stateDir } = createProject();
    const env = { PATH: process.env["PATH"], OWN_SECRET: "s3cret" };
    const createAgentUsing = (name: string): ResolvedAgentConfig => ({ ...agent, system_prompt: `Use \${${name}}.` });
    await expect(runAgent({ agent: createAgentUsing("NOT_SET"), prompt: "x", stateDir, env })).rejects.toMatchObject({
      code: "DROVER-AGT-007",
      field: "agent.system_prompt",
      message: expect.stringContaining("${NOT_SET}"),
    });
    expect(existsSync(stateDir)).toBe(false);
    expect(await runAgent({ agent: createAgentUsing("OWN_SECRET"), prompt: "x", stateDir, env })).toMatchObject({
      success: true,
    });
  });

  it("runs several agents at once on one state directory", async () => {
    const { agent, runner, stateDir } = createProject();
    const results = await Promise.all([1, 2, 3, 4, 5].map((n) => runner.run({ agent, prompt: `number ${n}` })));
    expect(results.map(({ success }) => success)).toEqual([true, true, true, true, true]);
    expect((await listRuns(stateDir)).map(({ prompt }) => prompt).sort()).toEqual(
      [1, 2, 3, 4, 5].map((n) => `number ${n}`),
    );
  });

  it.each<[unknown, string]>([
    [{ prompt: "x", stateDir: "s" }, "agent"],
    [{ agent: { name: "a" }, stateDir: "s" }, "prompt"],
    [{ agent: echo, prompt: 7, stateDir: "s" }, "prompt"],
    [{ agent: echo, prompt: "x" }, "stateDir"],
    [{ agent: echo, prompt: "x", stateDir: "s", resume: "a", fork: "b" }, "fork"],
    [{ agent: echo, prompt: "x", stateDir: "s", resume: "a", forkAtTurn: 1 }, "forkAtTurn"],
    [{ agent: echo, prompt: "x", stateDir: "s", onMessage: 7 }, "onMessage"],
    [{ agent: "echo", prompt: "x", stateDir: "s" }, "agent"],
    [{ agent: { ...echo, modle: "x" }, prompt: "x", stateDir: "s" }, "agent.modle"],
    [{ agent: { ...echo, executor: "modle" }, prompt: "x", stateDir: "s" }, "agent.executor"],
    [{ agent: { name: "a", budget: { cost_usd: 0 } }, prompt: "x", stateDir: "s" }, "agent.budget.cost_usd"],
    [{ agent: { name: "a", budget: { tokens: 0 } }, prompt: "x", stateDir: "s" }, "agent.budget.tokens"],
    [{ agent: { name: "a", budget: { turns: 0 } }, prompt: "x", stateDir: "s" }, "agent.budget.turns"],
    [
      { agent: { name: "a", budget: { per_day: { tokens: 0 } } }, prompt: "x", stateDir: "s" },
      "agent.budget.per_day.tokens",
    ],
    [{ agent: { name: "a", permissions: { mode: "yolo" } }, prompt: "x", stateDir: "s" }, "agent.permissions.mode"],
    [{ agent: echo, prompt: "x", stateDir: "s", coordinator: "environment", env: {} }, "coordinator"],
  ])("rejects %j and names the field", async (options, field) => {
    // A caller in plain JavaScript can do this.
    const error: unknown = await runAgent(options as Parameters<typeof runAgent>[0]).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(RequestError);
    expect(error).toMatchObject({ field, next: expect.any(String) });
    expect(existsSync("s")).toBe(false);
  });
});

describe("AgentRunner", () => {
  it("resumes a session in a new run", async () => {
    const { agent, runner, stateDir } = createProject([{ text: "one" }, { text: "two" }]);
    const first = await runner.run({ agent, prompt: "Begin" });
    const second = await runner.resume(first.sessionId!, agent, "Go on");
    expect(second).toMatchObject({ success: true, sessionId: first.sessionId, summary: "two" });
    expect(second.run).toMatchObject({ mode: "resume", trigger_type: "manual" });
    const store = await openStore({
      directory: recordDirectory(stateDir),
      now: () => new Date(),
      createIfMissing: false,
    });
    expect(await store.read.session(first.sessionId!)).toMatchObject({ run_count: 2, agent_name: "helper" });
    await store.close();
  });

  it("forks a session without changing the original", async () => {
    const { agent, runner } = createProject([{ text: "one" }, { text: "two" }, { text: "three" }]);
    const first = await runner.run({ agent, prompt: "Begin" });
    const forked = await runner.fork(first.sessionId!, agent, "Try another way");
    expect(forked).toMatchObject({ success: true, summary: "two" });
    expect(forked.sessionId).not.toBe(first.sessionId);
    expect(forked.run).toMatchObject({ mode: "fork", trigger_type: "fork", forked_from: first.sessionId });
    expect(await runner.resume(first.sessionId!, agent, "Go on")).toMatchObject({ summary: "two" });
  });

  it("forks a session at an earlier turn", async () => {
    const { agent, runner } = createProject([{ text: "one" }, { text: "two" }, { text: "three" }]);
    const first = await runner.run({ agent, prompt: "Begin" });
    await runner.resume(first.sessionId!, agent, "Go on");
    const forked = await runner.fork(first.sessionId!, agent, "Another way", { forkAtTurn: 1 });
    expect(forked, String(forked.error)).toMatchObject({ success: true, summary: "two" });
  });

  it("rejects a session that is unknown, expired, or belongs to another agent or executor, with a SessionError that says what to do", async () => {
    const { agent, runner, stateDir } = createProject();
    const { sessionId } = await runner.run({ agent, prompt: "Begin" });
    const unknownError: unknown = await runner.resume("nowhere", agent, "x").catch((error: unknown) => error);
    expect(unknownError).toBeInstanceOf(SessionError);
    expect(unknownError).toMatchObject({ sessionId: "nowhere", agentName: "helper", jobId: "" });
    expect(String(unknownError)).toContain("Start a new session");
    const withOtherAgent = runner.fork(sessionId!, { ...agent, name: "other" }, "x");
    await expect(withOtherAgent).rejects.toMatchObject({
      name: "SessionError",
      message: expect.stringContaining("helper"),
    });
    const withOtherExecutor = runner.resume(
      sessionId!,
      { ...agent, executor: "claude-sdk", provider: undefined, script: undefined },
      "x",
    );
    await expect(withOtherExecutor).rejects.toMatchObject({
      name: "SessionError",
      message: expect.stringContaining("belongs to the executor model"),
    });
    const expiringAgent = { ...agent, session: { timeout: 0.001 } };
    await expect(runner.resume(sessionId!, expiringAgent, "x")).rejects.toMatchObject({
      name: "SessionError",
      message: expect.stringContaining("session.timeout"),
    });
    expect(await listRuns(stateDir)).toHaveLength(1);
  });
});
