import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport, type Transport } from "@modelcontextprotocol/client";
import * as z from "zod";
import type { Running } from "../model/process.ts";
import type { Tool, ToolContext } from "../model/tool.ts";
import { mcpServerSchema } from "./mcp-server-schema.ts";

export interface McpServers {
  tools: Tool[];
  /** The servers that could not be used. The others work. */
  faults: { server: string; message: string }[];
  close(): Promise<void>;
}

interface Options extends Pick<ToolContext, "start" | "signal"> {
  workingDirectory: string;
  version: string;
  /** How long a server may take to start, and to answer a call. */
  startMs: number;
  callMs: number;
}

/** Starts an agent's servers for one run. If a server does not start, only its own tools are missing. */
export async function openMcpServers(servers: Record<string, unknown>, options: Options): Promise<McpServers> {
  const opened = await Promise.all(Object.entries(servers).map(([name, config]) => openServer(name, config, options)));
  return {
    tools: opened.flatMap((each) => each.tools),
    faults: opened.flatMap((each) => each.faults),
    close: async () => void (await Promise.all(opened.map((each) => each.close()))),
  };
}

async function openServer(name: string, config: unknown, options: Options): Promise<McpServers> {
  const checked = mcpServerSchema.safeParse(config);
  if (!checked.success) return failed(name, `its configuration is invalid: ${z.prettifyError(checked.error)}`);
  const client = new Client({ name: "drover", version: options.version });
  const close = (): Promise<void> => client.close();
  let stderrNote = (): string => "";
  try {
    const limits = { timeout: options.startMs, signal: options.signal };
    const opened = await transportOf(checked.data, options);
    stderrNote = opened.stderrNote;
    await client.connect(opened.transport, limits);
    const { tools } = await client.listTools(undefined, limits);
    return { tools: tools.map((tool) => toTool(name, tool, client, options)), faults: [], close };
  } catch (error) {
    await close();
    return failed(name, `${error instanceof Error ? error.message : String(error)}${stderrNote()}`);
  }
}

function failed(server: string, message: string): McpServers {
  return { tools: [], faults: [{ server, message }], close: async () => undefined };
}

type ListedTool = Awaited<ReturnType<Client["listTools"]>>["tools"][number];

/** Names tools as other clients do. A tool counts as `execute` unless its server declares it as read-only. */
function toTool(server: string, listed: ListedTool, client: Client, { callMs }: Options): Tool {
  return {
    name: `mcp__${server}__${listed.name}`,
    description: listed.description ?? "",
    input_schema: listed.inputSchema,
    effect: listed.annotations?.readOnlyHint === true ? "read" : "execute",
    async run(input, { signal }) {
      try {
        const answer = await client.callTool(
          { name: listed.name, arguments: (input ?? {}) as Record<string, unknown> }, // the server validates its own input
          { timeout: callMs, signal },
        );
        const text = answer.content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
        return answer.isError === true ? { ok: false, error: { code: "failed", message: text } } : { ok: true, text };
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

interface Opened {
  transport: Transport;
  /** What the program wrote to stderr, to append to an error. */
  stderrNote(): string;
}

async function transportOf(config: z.output<typeof mcpServerSchema>, options: Options): Promise<Opened> {
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
  return overProcess(running);
}

const maxStderr = 500;

/** Connects through Drover's own process layer, so that the server is recorded and stopped with everything it started. */
function overProcess(running: Running): Opened {
  let written = "";
  const transport: Transport = {
    async start() {
      const { stdin, stdout, stderr } = running;
      if (!stdin || !stdout) throw new Error((await running.result).error?.message ?? "it could not be started");
      // a server that does not read runs into the timeout
      stdin.on("error", (error) => transport.onerror?.(error));
      stderr?.on("data", (chunk: Buffer) => (written = (written + chunk.toString("utf8")).slice(-maxStderr)));
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
  return { transport, stderrNote: () => (written.trim() === "" ? "" : ` (stderr: ${written.trim()})`) };
}
