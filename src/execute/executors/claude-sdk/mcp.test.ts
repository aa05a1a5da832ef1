import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { serve } from "@hono/node-server";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { openClaudeSdk } from "../../../../test/fixtures/execute/claude-sdk.ts";
import type { ToolCall } from "../../../../test/model-server/script.ts";
import type { RunEvent } from "../../../model/event.ts";
import { toMcpServers } from "./mcp.ts";

const call = (name: string): ToolCall => ({ name, input: { word: "sheep" }, exact: true });
const harness = openClaudeSdk([
  {
    when: "call them",
    turns: [
      { tools: [call("mcp__here__look"), call("mcp__notes__look"), call("mcp__web__look")] },
      { text: "I called them." },
    ],
  },
  { when: "change", turns: [{ tool: call("mcp__notes__change") }, { text: "I tried." }] },
  { when: "do without", turns: [{ text: "I did without." }] },
]);
const cleanups: (() => unknown)[] = [];
afterAll(async () => {
  for (const clean of cleanups) clean();
  await (await harness).close();
});

const stdio = {
  command: process.execPath,
  args: [join(import.meta.dirname, "../../../../test/fixtures/mcp/server.mjs")],
  env: {},
};

/** A server with one tool that reports where it was called. */
function createServer(location: string): McpServer {
  const server = new McpServer({ name: location, version: "1" });
  const inputSchema = z.object({ word: z.string() });
  server.registerTool("look", { description: "Looks.", inputSchema }, ({ word }) => ({
    content: [{ type: "text", text: `${word} ${location}` }],
  }));
  return server;
}

/** Serves MCP over HTTP and requires a header. */
async function startHttp(): Promise<string> {
  const handler = createMcpHandler(() => createServer("over http"));
  const server = serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) =>
      request.headers.get("x-key") === "k" ? handler.fetch(request) : new Response("no", { status: 401 }),
  });
  cleanups.push(() => server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

const listResults = (events: readonly RunEvent[]): string =>
  JSON.stringify(events.flatMap((event) => (event.type === "tool_result" ? [event.output] : [])));
const listUnmatchedPatterns = (events: readonly RunEvent[]): unknown[] =>
  events.flatMap((event) => (event.type === "system" && event.subtype === "unmatched_permission" ? [event.data] : []));
const listServerErrors = (events: readonly RunEvent[]): string[] =>
  events.flatMap((event) => (event.type === "error" && event.code === "mcp_server_failed" ? [event.message] : []));

test("calls servers in process, over stdio and over HTTP, and reports those that fail", async () => {
  const result = await (
    await harness
  ).run("call them", {
    host: { mcpServers: { here: { type: "sdk", name: "here", instance: createServer("in process") } } },
    agent: {
      mcp_servers: {
        here: { type: "sdk" },
        notes: stdio,
        web: { type: "http", url: await startHttp(), headers: { "x-key": "k" } },
        gone: { command: "/nowhere/at-all" },
        elsewhere: { type: "sdk" },
        wrong: { url: "not an address" },
      },
      permissions: {
        mode: "acceptEdits",
        allowed_tools: ["mcp__here__*", "mcp__notes", "mcp__web__look", "mcp__typo__*"],
      },
    },
  });
  expect(result.outcome).toMatchObject({ status: "completed", text: "I called them." });
  expect(listResults(result.events)).toMatch(/sheep in process[^]*looked at sheep[^]*sheep over http/);
  expect(listServerErrors(result.events)).toEqual([
    expect.stringContaining("The MCP server elsewhere cannot be used: it is an in-process server"),
    expect.stringContaining("The MCP server wrong cannot be used: its configuration is invalid"),
    expect.stringContaining("The MCP server gone cannot be used: "),
  ]);
  expect(listUnmatchedPatterns(result.events)).toMatchObject([{ pattern: "mcp__typo__*" }]);
});

test("reports servers that hang, send garbage or exit at once, and continues without them", async () => {
  const program = (code: string) => ({ command: process.execPath, args: ["-e", code] });
  const result = await (
    await harness
  ).run("do without", {
    env: { MCP_TIMEOUT: "1000" },
    agent: {
      mcp_servers: {
        hanging: program("setInterval(() => {}, 1000)"),
        babbling: program("setInterval(() => console.log('{nonsense'), 10)"),
        ending: program("console.error('no licence found'); process.exit(3)"),
      },
    },
  });
  expect(result.outcome).toMatchObject({ status: "completed", text: "I did without." });
  expect(listServerErrors(result.events)).toEqual(
    ["hanging", "babbling", "ending"].map((name) => expect.stringContaining(`The MCP server ${name} cannot be used: `)),
  );
});

test("denies all tools of a server by a wildcard, and asks about tools that change something", async () => {
  const { run } = await harness;
  const denied = await run("change", {
    agent: {
      mcp_servers: { notes: stdio },
      permissions: { mode: "bypassPermissions", denied_tools: ["mcp__notes__*"] },
    },
  });
  expect(denied.outcome).toMatchObject({ status: "failed", reason: "permission_denied" });
  expect(listResults(denied.events)).not.toContain("changed sheep");
  expect(listUnmatchedPatterns(denied.events)).toEqual([]);
  const questions: unknown[] = [];
  const ask = (allowed_tools: string[]) =>
    run("change", {
      agent: { mcp_servers: { notes: stdio }, permissions: { mode: "acceptEdits", allowed_tools } },
      invocation: { attended: true },
      context: {
        ask: async ({ tool, effect }) => {
          questions.push([tool, effect]);
          return { decision: "allow" };
        },
      },
    });
  expect(listResults((await ask([])).events)).toContain("changed sheep");
  expect(questions).toEqual([["mcp__notes__change", "execute"]]);
  // The whole server is allowed, so nobody is asked.
  expect(listResults((await ask(["mcp__notes"])).events)).toContain("changed sheep");
  expect(questions).toHaveLength(1);
});

test("converts an agent's servers to the SDK's format", () => {
  const configured = {
    posthog: { type: "http", url: "https://mcp.example", headers: { authorization: "Bearer x" } },
    files: { command: "npx", args: ["-y", "server"], env: { API_KEY: "k" } },
  };
  expect(toMcpServers(configured)).toEqual({
    servers: {
      posthog: { type: "http", url: "https://mcp.example", headers: { authorization: "Bearer x" } },
      files: { type: "stdio", command: "npx", args: ["-y", "server"], env: { API_KEY: "k" } },
    },
    failures: [],
  });
  expect(toMcpServers(undefined)).toEqual({ servers: {}, failures: [] });
});
