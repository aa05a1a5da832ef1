import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport, type Transport } from "@modelcontextprotocol/client";
import * as z from "zod";
import type { Running } from "../model/process.ts";
import type { Tool, ToolContext } from "../model/tool.ts";
import { mcpServerSchema } from "./mcp-server-schema.ts";

export interface McpServers {
  tools: Tool[];
  /** Those that could not be used; the others work. */
  faults: { server: string; message: string }[];
  close(): Promise<void>;
}

interface Options extends Pick<ToolContext, "start" | "signal"> {
  workingDirectory: string;
  version: string;
  /** How long one may take to start, and to answer a call. */
  startMs: number;
  callMs: number;
}

/** Starts the servers of an agent for one run. A server that does not start costs its own tools only. */
export async function openMcpServers(servers: Record<string, unknown>, options: Options): Promise<McpServers> {
  const opened = await Promise.all(Object.entries(servers).map(([name, config]) => openServer(name, config, options)));
  return {
    tools: opened.flatMap((one) => one.tools),
    faults: opened.flatMap((one) => one.faults),
    close: async () => void (await Promise.all(opened.map((one) => one.close()))),
  };
}

async function openServer(name: string, config: unknown, options: Options): Promise<McpServers> {
  const checked = mcpServerSchema.safeParse(config);
  if (!checked.success) return failed(name, `its configuration is wrong: ${z.prettifyError(checked.error)}`);
  const client = new Client({ name: "drover", version: options.version });
  const close = (): Promise<void> => client.close();
  let complaint = (): string => "";
  try {
    const limits = { timeout: options.startMs, signal: options.signal };
    const opened = await transportOf(checked.data, options);
    complaint = opened.complaint;
    await client.connect(opened.transport, limits);
    const { tools } = await client.listTools(undefined, limits);
    return { tools: tools.map((tool) => toTool(name, tool, client, options)), faults: [], close };
  } catch (error) {
    await close();
    return failed(name, `${error instanceof Error ? error.message : String(error)}${complaint()}`);
  }
}

function failed(server: string, message: string): McpServers {
  return { tools: [], faults: [{ server, message }], close: async () => undefined };
}

type ListedTool = Awaited<ReturnType<Client["listTools"]>>["tools"][number];

/** Named as other clients name them. Without a promise that it only reads, a tool counts as one that does things. */
function toTool(server: string, listed: ListedTool, client: Client, { callMs }: Options): Tool {
  return {
    name: `mcp__${server}__${listed.name}`,
    description: listed.description ?? "",
    input_schema: listed.inputSchema,
    effect: listed.annotations?.readOnlyHint === true ? "read" : "execute",
    async run(input, { signal }) {
      try {
        const answer = await client.callTool(
          { name: listed.name, arguments: (input ?? {}) as Record<string, unknown> }, // a server checks its own input
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
  /** What the program wrote to stderr. */
  complaint(): string;
}

async function transportOf(config: z.output<typeof mcpServerSchema>, options: Options): Promise<Opened> {
  if ("url" in config) {
    const requestInit = { headers: config.headers };
    return {
      transport: new StreamableHTTPClientTransport(new URL(config.url), { requestInit }),
      complaint: () => "",
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

const longestComplaint = 500;

/** Through our own process layer: on the record, and ended with everything it started. */
function overProcess(running: Running): Opened {
  let said = "";
  const transport: Transport = {
    async start() {
      const { stdin, stdout, stderr } = running;
      if (!stdin || !stdout) throw new Error((await running.result).error?.message ?? "it could not be started");
      // a server that does not read is noticed by its silence
      stdin.on("error", (error) => transport.onerror?.(error));
      stderr?.on("data", (chunk: Buffer) => (said = (said + chunk.toString("utf8")).slice(-longestComplaint)));
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
  return { transport, complaint: () => (said.trim() === "" ? "" : ` (stderr: ${said.trim()})`) };
}
