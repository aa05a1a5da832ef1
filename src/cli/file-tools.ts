import { readFileSync } from "node:fs";
import { RequestError } from "../model/errors.ts";
import type { Tool, ToolContext } from "../model/tool.ts";
import { start } from "../process/start.ts";
import { callTool, createFileTools } from "../tools/file-tools.ts";
import { ToolFailure } from "../tools/tool-failure.ts";
import { openWorkspace } from "../tools/workspace.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";
import { waitForShutdown } from "./wait-for-shutdown.ts";

declare const DROVER_VERSION: string;

export const fileToolsCommand: CommandSpec = {
  name: "file-tools",
  summary: "read, write, patch, delete, list and search files, confined to one directory",
  placeholders: "WORKSPACE [JSON]",
  arity: [1, 2],
  examples: [
    [`drover file-tools . '{"tool":"file.read","path":"README.md"}'`, "one call, with the result as JSON"],
    ["drover file-tools . - < call.json", "the call from stdin"],
    ["drover file-tools . --mcp", "an MCP server on stdin and stdout"],
    ["drover file-tools . --http 0", "an MCP server over HTTP, on any free local port"],
  ],
  options: {
    mcp: { description: "serve the tools to an MCP client on stdin and stdout" },
    http: { placeholder: "PORT", description: "serve the tools over HTTP on loopback; prints the address and a token" },
  },
  run: runFileTools,
};

async function runFileTools({ positionals, options }: CommandInput): Promise<number> {
  const [directory = "", call] = positionals;
  const http = readText(options, "http");
  const modes = [call, options["mcp"], http].filter((mode) => mode !== undefined).length;
  if (modes !== 1) throw usageError("Pass one call as JSON, or --mcp, or --http PORT.", "file-tools", "JSON");
  // An empty path would be the current directory, for example in `drover file-tools "$UNSET"`.
  if (directory === "") throw usageError("WORKSPACE is empty.", "file-tools", "WORKSPACE");
  const tools = createFileTools(await openWorkspace(directory).catch(throwWorkspaceError));
  if (call !== undefined) return callOnce(tools, call === "-" ? readFileSync(0, "utf8") : call);
  if (http === undefined) return serveStdio(tools);
  if (!/^\d{1,5}$/.test(http) || Number(http) > 65_535)
    throw usageError(`--http ${http} is not a port number.`, "file-tools", "--http");
  return serveHttp(tools, Number(http));
}

async function callOnce(tools: readonly Tool[], json: string): Promise<number> {
  const result = await callTool(tools, parseCall(json), { signal: new AbortController().signal, start: startSearch });
  write(1, toJsonLine(result));
  return result.ok ? 0 : 1;
}

async function serveStdio(tools: readonly Tool[]): Promise<number> {
  const { serveMcpStdio } = await import("./serve-mcp-stdio.ts");
  const { createMcpServer } = await import("../tools/mcp-server.ts");
  const { close, ended } = await serveMcpStdio(createMcpServer(tools, DROVER_VERSION, startSearch));
  await waitForShutdown({ graceful: close, immediate: close, done: ended });
  return 0;
}

async function serveHttp(tools: readonly Tool[], port: number): Promise<number> {
  const { serveMcp } = await import("./serve-mcp.ts");
  const { createMcpServer } = await import("../tools/mcp-server.ts");
  const { url, token, close } = await serveMcp(() => createMcpServer(tools, DROVER_VERSION, startSearch), port);
  const shutdown = waitForShutdown({ graceful: close, immediate: close, done: new Promise(() => undefined) });
  write(1, toJsonLine({ url, token }));
  await shutdown;
  return 0;
}

/** Starts ripgrep, which needs none of Drover's environment variables. */
const startSearch: ToolContext["start"] = async (command) =>
  start(command, { environment: { mode: "replace" }, stdin: "none" }, new AbortController().signal);

function parseCall(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw usageError(
      `The call is not valid JSON: ${error instanceof Error ? error.message : String(error)}`,
      "file-tools",
      "JSON",
    );
  }
}

function throwWorkspaceError(error: unknown): never {
  if (!(error instanceof ToolFailure)) throw error;
  throw new RequestError({
    code: error.code === "not_found" ? "DROVER-USE-003" : "DROVER-USE-004",
    field: "WORKSPACE",
    message: error.message,
    next: "Pass the path of an existing directory.",
  });
}
