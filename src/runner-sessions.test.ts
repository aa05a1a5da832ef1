import { existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { runsDirectory, workDirectory } from "./model/state-layout.ts";
import { openHost, sampleAgent } from "../test/fixtures/dispatch/host.ts";
import { startModelServer } from "../test/model-server/server.ts";
import { hasEnded } from "./model/states.ts";
import { openProfiles } from "./compose/open-profiles.ts";
import { startRunner } from "./runner.ts";

const poll = <T>(get: () => T | Promise<T>) => expect.poll(get, { interval: 10 });

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

function createDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "drover-moving-"));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

const secret = "canary-2b9d64f0c1";
const env = {
  ...process.env,
  DROVER_TRUST: tmpdir(),
  ANTHROPIC_API_KEY: "key-a",
  OPENAI_API_KEY: "key-o",
  GEMINI_API_KEY: "key-g",
  AWS_ACCESS_KEY_ID: "id-b",
  AWS_SECRET_ACCESS_KEY: "key-b",
  TEST_API_KEY: secret,
};

/** Starts a coordinator and runners of the executor `model`, each with its own state directory. */
async function setUp(config: Record<string, unknown>) {
  const host = await openHost({ rescueEveryMs: 50 });
  await host.dispatcher.start();
  cleanups.push(host.dispose, host.close);
  host.agents.setFileAgents([
    sampleAgent({ name: "coder", type: "autonomous", command: null, executor: "model", model: "m" }),
  ]);
  const profiles = createDirectory();
  // Provides the packages that Drover does not install itself.
  symlinkSync(join(import.meta.dirname, "../test/clients/node_modules"), join(profiles, "node_modules"));
  writeFileSync(join(profiles, "model.json"), JSON.stringify({ type: "model", config }));
  return {
    host,
    async startNewRunner() {
      const directory = createDirectory();
      const opened = await openProfiles({ names: ["model"], directories: [profiles], env, onNotice: expect.fail });
      mkdirSync(join(directory, "state"));
      const runner = await startRunner({
        port: host.port,
        profiles: opened.profiles,
        stateDirectory: join(directory, "state"),
        projectDir: directory,
        env,
        maxOutputKb: 1024,
        onNotice: () => undefined,
      });
      cleanups.push(opened.stop, runner.stop);
      return {
        stop: runner.stop,
        scratch: (session: string) => join(workDirectory(runsDirectory(join(directory, "state"))), session),
      };
    },
    async waitForEnd(run_id: string) {
      await poll(async () => hasEnded((await host.run(run_id)).status)).toBe(true);
      return host.run(run_id);
    },
  };
}

const createCall = (name: string, input: Record<string, unknown>) => ({ name, input, exact: true as const });
const writeInput = { path: "a/b.txt", content: `hello ${secret}` };
const readInputs = [{ path: "a/b.txt" }, { path: "a/b.txt", limit: 1 }];

test.each([
  ["anthropic", "", "file_"],
  ["openai", "/v1", "file_"],
  ["google", "/v1beta", "file_"],
  ["ollama", "/v1", "file_"],
  ["openai-compatible", "/v1", "file_"],
  ["bedrock", "", "file_"],
  ["claude-code", "", "mcp__drover__file_"],
])(
  "continues a session of %s on another runner with its files and its whole conversation",
  async (provider, path, prefix) => {
    const server = await startModelServer(({ messages }) => {
      const results = messages.flatMap(({ tool_results }) => tool_results).length;
      if (results === 0) return { tool: createCall(`${prefix}write`, writeInput) };
      if (results === 1) return { tools: readInputs.map((input) => createCall(`${prefix}read`, input)) };
      const lastPrompt = messages.findLast(({ role }) => role === "user")!.text;
      return { text: lastPrompt === "and now?" ? "continued" : "done" };
    });
    cleanups.push(server.stop);
    const { host, startNewRunner, waitForEnd } = await setUp({ provider, base_url: server.url + path });
    const first = await startNewRunner();
    const run = await waitForEnd(await host.submit({ agent_name: "coder", prompt: "begin" }));
    expect(run).toMatchObject({ status: "completed", result_text: "done" });
    const session_id = run.session_id!;
    expect(readFileSync(join(first.scratch(session_id), "a/b.txt"), "utf8")).toBe(`hello ${secret}`);
    const types = (await host.events(run.run_id)).map(({ event }) => event.type);
    expect(types.filter((type) => type.startsWith("tool_"))).toEqual(
      "tool_use tool_result tool_use tool_use tool_result tool_result".split(" "),
    );
    expect(await host.store.read.session(session_id)).toMatchObject({ portable: true });
    const stored = host.store.connection.sql(
      "select bytes from session_states union all select bytes from session_files",
    );
    for (const { bytes } of stored.all()) expect(Buffer.from(bytes as Uint8Array).includes(secret)).toBe(false);

    await first.stop();
    const second = await startNewRunner();
    const next = await waitForEnd(
      await host.submit({ agent_name: "coder", mode: "resume", session_id, prompt: "and now?" }),
    );
    expect(next).toMatchObject({ status: "completed", result_text: "continued" });
    const { messages } = server.requests.at(-1)!;
    const texts = messages.filter(({ role, text }) => role !== "system" && text !== "").map(({ text }) => text);
    expect(texts).toEqual(["begin", "done", "and now?"]);
    expect(messages.flatMap(({ tool_results }) => tool_results)).toHaveLength(3);
    expect(readFileSync(join(second.scratch(session_id), "a/b.txt"), "utf8")).toMatch(/^hello \[redacted/i);
    expect(existsSync(first.scratch(session_id))).toBe(true);
  },
);

test("continues a session of scripted on another runner with its files and its whole conversation", async () => {
  const script = join(createDirectory(), "turns.json");
  const turns = [
    { text: "I write.", tools: [{ name: "file.write", input: writeInput }] },
    { tools: readInputs.map((input) => ({ name: "file.read", input })) },
    { text: "done" },
    { text: "continued" },
    { text: "asked too often" },
  ];
  writeFileSync(script, JSON.stringify({ turns }));
  const { host, startNewRunner, waitForEnd } = await setUp({ provider: "scripted", script });
  const first = await startNewRunner();
  const run = await waitForEnd(await host.submit({ agent_name: "coder", prompt: "begin" }));
  expect(run).toMatchObject({ status: "completed", result_text: "done" });
  const session_id = run.session_id!;
  expect(readFileSync(join(first.scratch(session_id), "a/b.txt"), "utf8")).toBe(`hello ${secret}`);
  const types = (await host.events(run.run_id)).map(({ event }) => event.type);
  expect(types.filter((type) => type.startsWith("tool_"))).toEqual(
    "tool_use tool_result tool_use tool_use tool_result tool_result".split(" "),
  );

  await first.stop();
  const second = await startNewRunner();
  const next = await waitForEnd(
    await host.submit({ agent_name: "coder", mode: "resume", session_id, prompt: "and now?" }),
  );
  // Only a conversation with all three earlier answers gets the fourth.
  expect(next).toMatchObject({ status: "completed", result_text: "continued" });
  expect(readFileSync(join(second.scratch(session_id), "a/b.txt"), "utf8")).toMatch(/^hello \[redacted/i);
  const [stored] = host.store.connection.sql("select bytes from session_states").all();
  const state = Buffer.from(stored!["bytes"] as Uint8Array).toString("utf8");
  expect(state).not.toContain(secret);
  const { messages } = JSON.parse(state).conversation;
  expect(messages).toMatchObject([
    { role: "user", text: "begin" },
    { role: "assistant", parts: [{ text: "I write." }, { name: "file.write" }] },
    { role: "tool", results: [{ output: expect.stringContaining('"created":true') }] },
    { role: "assistant", parts: [{ name: "file.read" }, { name: "file.read" }] },
    {
      role: "tool",
      results: Array.from({ length: 2 }, () => ({ output: expect.stringContaining("hello [redacted") })),
    },
    { role: "assistant", parts: [{ text: "done" }] },
    { role: "user", text: "and now?" },
    { role: "assistant", parts: [{ text: "continued" }] },
  ]);
});

test("forks a session of three turns at turn 1 with only that turn, and rejects a fork at turn 4", async () => {
  const server = await startModelServer(({ messages }) => {
    const last = messages.at(-1)!;
    if (last.text === "one") return { tool: createCall("file_write", { path: "a.txt", content: "a" }) };
    return { text: `answer ${messages.length}` };
  });
  cleanups.push(server.stop);
  const { host, startNewRunner, waitForEnd } = await setUp({ provider: "anthropic", base_url: server.url });
  await startNewRunner();
  const { session_id } = await waitForEnd(await host.submit({ agent_name: "coder", prompt: "one" }));
  const request = { agent_name: "coder", session_id: session_id! };
  for (const prompt of ["two", "three"]) await waitForEnd(await host.submit({ ...request, mode: "resume", prompt }));
  const readState = () =>
    host.store.connection.sql("select bytes from session_states where session_id = ?").all(session_id)[0]!["bytes"];
  const original = readState();
  const fork = await waitForEnd(await host.submit({ ...request, mode: "fork", fork_at_turn: 1, prompt: "other" }));
  expect(fork).toMatchObject({ status: "completed", fork_at_turn: 1 });
  const { messages } = server.requests.at(-1)!;
  const texts = messages.filter(({ role, text }) => role === "user" && text !== "").map(({ text }) => text);
  expect(texts).toEqual(["one", "other"]);
  expect(messages.flatMap(({ tool_results }) => tool_results)).toHaveLength(1);
  expect(readState()).toEqual(original);
  const rejectedFork = await waitForEnd(
    await host.submit({ ...request, mode: "fork", fork_at_turn: 4, prompt: "other" }),
  );
  expect(rejectedFork).toMatchObject({
    status: "failed",
    reason: "refused",
    error: expect.stringContaining("3 turns"),
  });
  const resumed = await host.ask({ ...request, mode: "resume", fork_at_turn: 1, prompt: "x" });
  expect(resumed).toMatchObject({ ok: false, fault: { status: 400, faults: [{ path: "body.fork_at_turn" }] } });
});
