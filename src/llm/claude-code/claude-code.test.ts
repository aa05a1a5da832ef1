import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { describeContract } from "../../../test/contract/contract.ts";
import { providerContract, type ProviderSubject } from "../../../test/contract/provider.ts";
import { openContext } from "../../../test/fixtures/execute/open-context.ts";
import { createMemoryStore, newId, startScriptedService } from "../../../test/fixtures/llm/scripted-service.ts";
import type { Turn } from "../../../test/model-server/script.ts";
import { startModelServer } from "../../../test/model-server/server.ts";
import type { Command } from "../../model/process.ts";
import { openProvider } from "../providers.ts";
import { claudeCode } from "./claude-code.ts";
import { continuation } from "./transcript.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

const toWireName = (name: string): string => `mcp__drover__${name.replaceAll(".", "_")}`;

/** Opens the provider on the real SDK, and records the commands it starts. */
async function openClaudeCode(url: string) {
  const { context, directory, alive, close } = await openContext();
  const started: Command[] = [];
  const provider = await openProvider("claude-code", {
    settings: { base_url: url },
    env: { PATH: process.env["PATH"], HOME: directory, ANTHROPIC_API_KEY: "key" },
    directory: join(import.meta.dirname, "../../../test/clients"),
    workDirectory: context.dirs.work,
    start(command) {
      started.push(command);
      return context.start(command);
    },
    store: createMemoryStore(),
    newId,
  });
  cleanups.push(close, provider.close);
  return { provider, started, alive };
}

describeContract("the claude-code provider", providerContract, async () => {
  const { server, ...scripted } = await startScriptedService(toWireName);
  cleanups.push(server.stop);
  const { provider } = await openClaudeCode(server.url);
  return {
    provider,
    model: "claude-sonnet-4-5",
    // The SDK reports a retry delay only if the service gave it in seconds.
    cannot: ["retry-after in milliseconds", "retry-after as a date"],
    looksLike: { "early end": "cut" },
    ...scripted,
    // A new process needs a message after results, which is not part of the conversation.
    lastRequest: () => scripted.lastRequest().filter((text) => text !== continuation),
  } satisfies ProviderSubject;
});

it("is ready with a login file, if that can be read", async () => {
  const home = mkdtempSync(join(tmpdir(), "drover-login-"));
  cleanups.push(() => rmSync(home, { recursive: true, force: true }));
  const packageDirectory = join(home, "node_modules", "@anthropic-ai", "claude-agent-sdk");
  mkdirSync(packageDirectory, { recursive: true });
  writeFileSync(join(packageDirectory, "index.js"), "");
  const isReady = () => claudeCode.isReady!({ env: { HOME: home, DROVER_TRUST: home }, directory: home });
  const file = join(home, ".claude", ".credentials.json");
  expect(await isReady()).toBe(false);
  // Root can read every file, so a directory stands for a file that cannot be read.
  mkdirSync(file, { recursive: true });
  expect(await isReady()).toBe(false);
  rmSync(file, { recursive: true });
  writeFileSync(file, "{}");
  expect(await isReady()).toBe(true);
});

it("keeps a run's conversation in one recorded process, and makes no requests of its own", async () => {
  const call = (name: string) => ({ name: toWireName(name), input: { path: "a" }, exact: true as const });
  const usage = { input_tokens: 1000, output_tokens: 100 };
  const turns: Turn[] = [
    { tools: [call("file.read"), call("file.read")], usage },
    { text: "read", usage },
    { text: "again", usage },
    { tool: call("file.read"), usage },
    { tool: call("file.missing"), usage },
  ];
  const server = await startModelServer(() => turns.shift() ?? { text: "asked too often" });
  cleanups.push(server.stop);
  const { provider, started, alive } = await openClaudeCode(server.url);
  const tools = [{ name: "file.read", description: "Reads a file.", input_schema: { type: "object" } }];
  const open = () => provider.createSession({ model: "claude-sonnet-4-5", system_prompt: "Be brief.", tools });
  const options = { signal: new AbortController().signal };

  const session = await open();
  await session.sendMessage("/cost @secret.txt", options);
  // This is longer than Claude Code passes on by default.
  const output = "0123456789".repeat(30_000);
  const results = session.pending.map(({ tool_use_id }) => ({ tool_use_id, output, is_error: false }));
  const first = await session.submitToolResults(results, options);
  const second = await session.sendMessage("once more", options);
  expect(server.requests[0]?.messages.at(-1)?.text).toContain("/cost @secret.txt");
  expect(server.requests[1]?.messages.at(-1)?.tool_results.every((text) => text.includes(output))).toBe(true);
  expect(JSON.stringify(server.requests[0]?.body["tools"])).not.toMatch(/"name":"(?!mcp__drover__)/);
  // It reports the total of the process: two requests, then a third of the same size.
  if (first.ok && second.ok) expect(first.usage.cost_usd).toBeCloseTo((second.usage.cost_usd ?? 0) * 2, 6);
  expect([first.ok, second.ok, started.length]).toEqual([true, true, 1]);

  await session.sendMessage("read", options);
  await provider.close();
  expect([server.requests.length, await alive()]).toEqual([4, 0]);

  // Claude Code itself answers a call of an unknown tool, and would then continue.
  const other = await open();
  expect(await other.sendMessage("use it", options)).toMatchObject({
    tool_uses: [{ name: toWireName("file.missing") }],
  });
  await provider.close();
  expect([server.requests.length, started.length, await alive()]).toEqual([5, 2, 0]);
});
