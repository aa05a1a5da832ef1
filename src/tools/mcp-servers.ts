import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport, type Transport } from "@modelcontextprotocol/client";
import * as z from "zod";
import type { RunningProcess } from "../model/process.ts";
import type { Tool, ToolContext } from "../model/tool.ts";
import { mcpServerSchema } from "./mcp-server-schema.ts";

export interface McpServers {
  tools: Tool[];
  /** The servers that could not be started. */
  failures: { server: string; message: string }[];
  close(): Promise<void>;
}

interface Options extends Pick<ToolContext, "start" | "signal"> {
  workingDirectory: string;
  version: string;
  startTimeoutMs: number;
  callTimeoutMs: number;
}

/** Starts an agent's servers for one run. A server that fails to start does not affect the others. */
export async function openMcpServers(servers: Record<string, unknown>, options: Options): Promise<McpServers> {
  const results = await Promise.all(Object.entries(servers).map(([name, config]) => openServer(name, config, options)));
  return {
    tools: results.flatMap(({ tools }) => tools),
    failures: results.flatMap(({ failures }) => failures),
    close: async () => void (await Promise.all(results.map(({ close }) => close()))),
  };
}

async function openServer(name: string, config: unknown, options: Options): Promise<McpServers> {
  const parsed = mcpServerSchema.safeParse(config);
  if (!parsed.success) return toFailure(name, `its configuration is invalid: ${z.prettifyError(parsed.error)}`);
  const client = new Client({ name: "drover", version: options.version });
  const close = (): Promise<void> => client.close();
  let stderrNote = (): string => "";
  try {
    const limits = { timeout: options.startTimeoutMs, signal: options.signal };
    const opened = await openTransport(parsed.data, options);
    stderrNote = opened.stderrNote;
    await client.connect(opened.transport, limits);
    const { tools } = await client.listTools(undefined, limits);
    return { tools: tools.map((tool) => toTool(name, tool, client, options)), failures: [], close };
  } catch (error) {
    await close();
    return toFailure(name, `${error instanceof Error ? error.message : String(error)}${stderrNote()}`);
  }
}

function toFailure(server: string, message: string): McpServers {
  return { tools: [], failures: [{ server, message }], close: async () => undefined };
}

type ListedTool = Awaited<ReturnType<Client["listTools"]>>["tools"][number];

/** Names tools as other clients do. A tool counts as `execute` unless its server declares it as read-only. */
function toTool(server: string, listed: ListedTool, client: Client, { callTimeoutMs }: Options): Tool {
  return {
    name: `mcp__${server}__${listed.name}`,
    description: listed.description ?? "",
    input_schema: listed.inputSchema,
    effect: listed.annotations?.readOnlyHint === true ? "read" : "execute",
    async run(input, { signal }) {
      try {
        const result = await client.callTool(
          { name: listed.name, arguments: (input ?? {}) as Record<string, unknown> }, // The server validates its own input.
          { timeout: callTimeoutMs, signal },
        );
        const text = result.content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
        return result.isError === true ? { ok: false, error: { code: "failed", message: text } } : { ok: true, text };
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        return {
          ok: false,
          error: { code: signal.aborted ? "cancelled" : "failed", message: `${server}: ${message}` },
        };
      }
    },
  };
}

interface OpenTransport {
  transport: Transport;
  /** Returns the end of the program's stderr, to append to an error message. */
  stderrNote(): string;
}

async function openTransport(config: z.output<typeof mcpServerSchema>, options: Options): Promise<OpenTransport> {
  if ("url" in config) {
    const requestInit = { headers: config.headers };
    return {
      transport: new StreamableHTTPClientTransport(new URL(config.url), { requestInit }),
      stderrNote: () => "",
    };
  }
  const running = await options.start({
    executable: config.command,
    arguments: config.args,
    environment: config.env,
    workingDirectory: options.workingDirectory,
  });
  return createProcessTransport(running);
}

const maxStderrCharacters = 500;

/** Talks to a server that Drover started, so that the server is recorded, and stopped with all programs it started. */
function createProcessTransport(running: RunningProcess): OpenTransport {
  let stderrTail = "";
  const transport: Transport = {
    async start() {
      const { stdin, stdout, stderr } = running;
      if (!stdin || !stdout) throw new Error((await running.result).error?.message ?? "it could not be started");
      // A write error does not fail a call; the call times out.
      stdin.on("error", (error) => transport.onerror?.(error));
      stderr?.on(
        "data",
        (chunk: Buffer) => (stderrTail = (stderrTail + chunk.toString("utf8")).slice(-maxStderrCharacters)),
      );
      createInterface({ input: stdout, crlfDelay: Infinity }).on("line", (line) => {
        if (line.trim() !== "") receive(line);
      });
      void running.result.then(() => transport.onclose?.());
    },
    async send(message) {
      running.stdin?.write(`${JSON.stringify(message)}\n`);
    },
    async close() {
      await running.kill("shutdown");
    },
  };
  function receive(line: string): void {
    try {
      transport.onmessage?.(JSON.parse(line));
    } catch (error) {
      transport.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }
  return { transport, stderrNote: () => (stderrTail.trim() === "" ? "" : ` (stderr: ${stderrTail.trim()})`) };
}
