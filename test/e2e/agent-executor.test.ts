import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startModelServer } from "../model-server/server.ts";
import { drover, exists, createDirectory, root } from "./drover.ts";

const agentFile = `---
script: ../turns.yaml
---
# Developer

You develop.

## Parameters

- TASK_FILE: the task

## Workflow

Read the task, then do it.
`;

/** A project with the agent `developer` and an empty workspace. */
function project() {
  const cwd = createDirectory();
  for (const path of ["agents", "ws"]) mkdirSync(join(cwd, path));
  writeFileSync(join(cwd, "agents", "developer.md"), agentFile);
  writeFileSync(
    join(cwd, "turns.yaml"),
    "turns:\n  - tools: [{ name: file.write, input: { path: done.txt, content: done } }]\n  - text: It is done.\n",
  );
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  const execute = (args: string[], options: { input?: string; env?: Record<string, string> } = {}) =>
    drover(["agent-executor", "agents/developer.md", "ws", ...args], {
      cwd,
      input: options.input ?? '{"TASK_FILE": "t.md"}',
      env: { ...env, ...options.env },
    });
  return { cwd, execute, session: () => readFileSync(join(cwd, "ws", ".session"), "utf8").trim() };
}

it("runs the script named in the spec without a key or a coordinator, and writes .session", async () => {
  const { cwd, execute, session } = project();
  const ran = await execute(["--provider", "scripted"]);
  expect([ran.code, ran.stdout], ran.stderr).toEqual([0, "It is done.\n"]);
  expect(readFileSync(join(cwd, "ws", "done.txt"), "utf8")).toBe("done");
  const first = session();

  const newSession = await execute(["--provider", "scripted", "--new", "--json"]);
  expect(JSON.parse(newSession.stdout)).toMatchObject({ status: "completed", agent_name: "developer", mode: "start" });
  expect(session()).toBe(JSON.parse(newSession.stdout).session_id);
  expect(session()).not.toBe(first);
});

it("uses the built-in script without a key if the spec names none, and writes .session", async () => {
  const { cwd, execute, session } = project();
  writeFileSync(join(cwd, "agents", "developer.md"), agentFile.replace("script: ../turns.yaml\n", "tags: [dev]\n"));
  const ran = await execute(["--provider", "scripted"]);
  expect(ran, ran.stderr).toMatchObject({ code: 0, stdout: expect.stringMatching(/^This is the built-in script/) });
  const first = session();
  const resumed = await execute(["--provider", "scripted", "--json"]);
  expect(JSON.parse(resumed.stdout)).toMatchObject({
    status: "completed",
    mode: "resume",
    session_id: first,
    result_text: expect.stringContaining("Set `script`"),
  });
  expect(readdirSync(join(cwd, "ws"))).toEqual([".session"]);
});

it("resumes the session named in .session or on the command line, with its whole history", async () => {
  const { cwd, execute, session } = project();
  const server = await startModelServer(({ messages }) => ({
    text: ["one", "two", "three"][messages.filter(({ role }) => role === "assistant").length] ?? "too many",
  }));
  const env = { ANTHROPIC_API_KEY: "key", ANTHROPIC_BASE_URL: server.url };
  try {
    expect(await execute(["--provider", "anthropic"], { env })).toMatchObject({ code: 0, stdout: "one\n" });
    const first = session();
    const withHint = await execute(["--provider", "anthropic"], { env, input: '{"TASK_FILE": "u.md"}' });
    expect(withHint).toMatchObject({
      code: 0,
      stdout: "two\n",
      stderr: expect.stringContaining(`resuming session ${first}`),
    });
    writeFileSync(join(cwd, "ws", ".session"), "changed by the agent");
    const resumedByName = await execute(["--provider", "anthropic", first], { env });
    expect([resumedByName.code, resumedByName.stdout], resumedByName.stderr).toEqual([0, "three\n"]);
    expect(session()).toBe(first);
    const texts = server.requests.map(({ messages }) => messages.map(({ text }) => text));
    expect(texts.at(-1)).toEqual([
      "You develop.",
      expect.stringMatching(/Read the task[^]*TASK_FILE: t\.md/),
      "one",
      "TASK_FILE: u.md",
      "two",
      "TASK_FILE: t.md",
    ]);
  } finally {
    await server.stop();
  }
});

/** Each provider with the variables it needs, the path of its base URL, and the prefix of Drover's tool names. */
const providers: [name: string, env: Record<string, string>, path: string, prefix: string][] = [
  ["anthropic", { ANTHROPIC_API_KEY: "key" }, "", "file_"],
  ["openai", { OPENAI_API_KEY: "key" }, "/v1", "file_"],
  ["google", { GEMINI_API_KEY: "key" }, "/v1beta", "file_"],
  ["ollama", {}, "/v1", "file_"],
  ["openai-compatible", {}, "/v1", "file_"],
  ["bedrock", { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "secret" }, "", "file_"],
  ["claude-code", { ANTHROPIC_API_KEY: "key" }, "", "mcp__drover__file_"],
  ["scripted", {}, "", "file."],
];

it.each(providers)(
  "on %s: writes, reads two files at once, answers, and continues in another process with it all",
  async (provider, env, path, prefix) => {
    const { cwd, execute } = project();
    // The packages that Drover does not install, as if they were installed in the project.
    symlinkSync(join(root, "test/clients/node_modules"), join(cwd, "node_modules"));
    const call = (name: string, input: Record<string, string>) => ({ name: `${prefix}${name}`, input });
    const turns = [
      { text: "I write.", tools: [call("write", { path: "a.txt", content: "from a" })] },
      { tools: [call("read", { path: "a.txt" }), call("read", { path: "t.md" })] },
      { text: "Both are read." },
      { text: "I remember." },
    ];
    // The script for the provider scripted, which has no service.
    writeFileSync(join(cwd, "turns.yaml"), JSON.stringify({ turns: [...turns, { text: "asked too often" }] }));
    const served = turns.map(({ tools = [], ...turn }) => ({
      ...turn,
      tools: tools.map((tool) => ({ ...tool, exact: true as const })),
    }));
    const server = await startModelServer([
      { when: "TASK_FILE: t.md", turns: served.slice(0, 3) },
      { when: "TASK_FILE: u.md", turns: served.slice(3) },
    ]);
    mkdirSync(join(cwd, "profiles"));
    const config = { provider, ...(provider === "scripted" ? {} : { base_url: server.url + path }) };
    writeFileSync(join(cwd, "profiles", "model.json"), JSON.stringify({ type: "model", config }));
    writeFileSync(join(cwd, "agents", "developer.md"), agentFile.replace("---\n", "---\nmodel: m\n"));
    try {
      writeFileSync(join(cwd, "ws", "t.md"), "the task");
      const ran = await execute(["--provider", provider, "--json"], { env });
      expect(ran.code, ran.stderr).toBe(0);
      const { run_id, ...run } = JSON.parse(ran.stdout);
      expect(run).toMatchObject({ status: "completed", result_text: "Both are read." });
      expect(readFileSync(join(cwd, "ws", "a.txt"), "utf8")).toBe("from a");
      const state = { DROVER_STATE_DIR: join(cwd, "state") };
      const eventsOutput = await drover(["runs", "events", run_id, "--json"], { cwd, env: state });
      const types = [...eventsOutput.stdout.matchAll(/"type":"(execution_started|tool_use|tool_result)"/g)].map(
        ([, type]) => type,
      );
      // The model requests both reads before it gets the result of either.
      const calls = "tool_use tool_result tool_use tool_use tool_result tool_result".split(" ");
      // One process for all answers of claude-code; the other providers start none.
      expect(types).toEqual(provider === "claude-code" ? ["execution_started", ...calls] : calls);

      const resumed = await execute(["--provider", provider], { env, input: '{"TASK_FILE": "u.md"}' });
      // The provider scripted gives its fourth answer only after the three earlier ones.
      expect([resumed.code, resumed.stdout], resumed.stderr).toEqual([0, "I remember.\n"]);
      if (provider === "scripted") return;
      expect(server.requests).toHaveLength(4);
      const modelInput = JSON.stringify(server.requests.at(-1)?.messages);
      for (const text of ["TASK_FILE: t.md", "I write.", "from a", "the task", "Both are read.", "TASK_FILE: u.md"])
        expect(modelInput).toContain(text);
    } finally {
      await server.stop();
    }
  },
);

it("refuses an empty WORKSPACE instead of working in the current directory", async () => {
  const { cwd } = project();
  const args = ["agent-executor", "agents/developer.md", "", "--provider", "scripted"];
  const { code, stderr } = await drover(args, { cwd, input: '{"TASK_FILE": "t.md"}' });
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("WORKSPACE is empty") });
  expect(exists(join(cwd, ".session"))).toBe(false);
});

it("refuses what it cannot do, with a code and exit code 2, and leaves no run and no .session", async () => {
  const { cwd, execute } = project();
  const cases: [args: string[], input: string, stable: string, says: string][] = [
    [["--provider", "openai"], "{}", "DROVER-LLM-002", "Set OPENAI_API_KEY in the environment of the runner, or of"],
    [["--provider", "scripted"], "[1]", "DROVER-PAR-006", "stdin is not a JSON object"],
    [["--provider", "scripted"], "{}", "DROVER-PAR-001", "TASK_FILE"],
    [
      ["--provider", "scripted", "01a1e5df-be17"],
      '{"TASK_FILE": "t.md"}',
      "DROVER-USE-008",
      "Unknown session: 01a1e5df-be17",
    ],
    [["--provider", "scripted", "01a1e5df-be17", "--new"], "{}", "DROVER-USE-001", "--new"],
  ];
  for (const [args, input, stable, says] of cases) {
    const { code, stdout, stderr } = await execute(args, { input });
    expect({ code, stdout }, stderr).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(stable);
    expect(stderr).toContain(says);
  }
  expect(exists(join(cwd, "ws", ".session"))).toBe(false);
  const runsList = await drover(["runs", "list"], { cwd, env: { DROVER_STATE_DIR: join(cwd, "state") } });
  expect([runsList.code, runsList.stdout]).toEqual([0, ""]);
});
