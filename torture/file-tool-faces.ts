import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport, type Tool } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { start } from "../src/process/start.ts";
import { callTool, createFileTools } from "../src/tools/file-tools.ts";
import { openWorkspace } from "../src/tools/workspace.ts";

/** One interface to the file tools of a workspace. */
export interface Face {
  name: string;
  /** Returns the tool's result as JSON. */
  call(call: { tool: string } & Record<string, unknown>): Promise<string>;
  close(): Promise<void>;
}

export interface McpFace extends Face {
  /** Returns what the server lists. */
  listTools(): Promise<Tool[]>;
}

/** MCP appears twice, over stdio and over HTTP. */
const openers = {
  "in process": openInProcess,
  stdio: openOverStdio,
  http: openOverHttp,
  program: async (workspace: string, root: string): Promise<Face> => ({
    name: "program",
    call: (call) => callProgram(root, workspace, call),
    close: async () => undefined,
  }),
};
export type FaceName = keyof typeof openers;
export const faceNames = Object.keys(openers) as FaceName[];

export function openFace(name: FaceName, workspace: string, root: string): Promise<Face> {
  return openers[name](workspace, root);
}

export function openMcpFace(name: "stdio" | "http", workspace: string, root: string): Promise<McpFace> {
  return openers[name](workspace, root);
}

async function openInProcess(workspace: string): Promise<Face> {
  const tools = createFileTools(await openWorkspace(workspace));
  const { signal } = new AbortController();
  const context = { signal, start: async (command: Parameters<typeof start>[0]) => start(command, {}, signal) };
  return {
    name: "in process",
    call: async (call) => JSON.stringify(await callTool(tools, call, context)),
    close: async () => undefined,
  };
}

async function openOverStdio(workspace: string, root: string): Promise<McpFace> {
  const client = createClient();
  const args = [join(root, "bin", "drover.js"), "file-tools", workspace, "--mcp"];
  await client.connect(new StdioClientTransport({ command: process.execPath, args }));
  return createMcpFace("stdio", client, async () => undefined);
}

async function openOverHttp(workspace: string, root: string): Promise<McpFace> {
  const server = spawn(process.execPath, [join(root, "bin", "drover.js"), "file-tools", workspace, "--http", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface({ input: server.stdout }), "line")) as [string];
  const { url, token } = JSON.parse(line) as { url: string; token: string }; // Printed by the command.
  const client = createClient();
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  return createMcpFace("http", client, async () => {
    server.kill("SIGTERM");
    await once(server, "exit");
  });
}

function createClient(): Client {
  return new Client({ name: "drover-tests", version: "1" });
}

function createMcpFace(name: string, client: Client, after: () => Promise<void>): McpFace {
  return {
    name,
    listTools: async () => (await client.listTools()).tools,
    async call({ tool, ...input }) {
      const answer = await client.callTool({ name: tool.replaceAll(".", "_"), arguments: input });
      return answer.content.map((part) => (part.type === "text" ? part.text : "")).join("");
    },
    async close() {
      await client.close();
      await after();
    },
  };
}

/** Calls the tool as a program and returns what it prints. */
async function callProgram(root: string, workspace: string, call: object): Promise<string> {
  const child = spawn(process.execPath, [join(root, "bin", "drover.js"), "file-tools", workspace, "-"], {
    stdio: ["pipe", "pipe", "ignore"],
  });
  child.stdin.on("error", () => undefined).end(JSON.stringify(call));
  let printed = "";
  child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString("utf8")));
  await once(child, "close");
  return printed;
}
