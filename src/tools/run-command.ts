import * as z from "zod";
import type { RunningProcess } from "../model/process.ts";
import type { Tool, ToolContext } from "../model/tool.ts";

const inputSchema = z.strictObject({
  command: z.string().min(1).max(100_000).describe("Command line, run by /bin/sh in the workspace"),
  timeout_seconds: z
    .number()
    .positive()
    .max(3600)
    .optional()
    .describe("Stop the command after this many seconds (default: 120)"),
});

/** The most bytes kept of the start and of the end of each stream. */
const maxEndBytes = 32 * 1024;

/** Creates a tool that runs commands in the workspace. Drover records them like every process of a run. */
export function createCommandTool(workspace: string): Tool {
  const { $schema: _, ...input_schema } = z.toJSONSchema(inputSchema, { io: "input" });
  return {
    name: "command.run",
    description: "Run a command in the workspace and return its output and exit code",
    input_schema,
    effect: "execute",
    async run(rawInput, context) {
      const input = inputSchema.safeParse(rawInput);
      if (!input.success) return { ok: false, error: { code: "invalid_input", message: z.prettifyError(input.error) } };
      const { command, timeout_seconds = 120 } = input.data;
      // Run a shell, because models write pipes, globs and `cd`.
      return runCommand(
        {
          executable: "/bin/sh",
          arguments: ["-c", command],
          workingDirectory: workspace,
          timeoutMs: timeout_seconds * 1000,
        },
        context,
      );
    },
  };
}

async function runCommand(command: Parameters<ToolContext["start"]>[0], context: ToolContext) {
  const running = await context.start(command);
  const [stdout, stderr] = [collectEnds(running.stdout), collectEnds(running.stderr)];
  const ended = await running.result;
  return {
    ok: true as const,
    exit_code: ended.exitCode,
    ...(ended.signal === null ? {} : { signal: ended.signal }),
    ...(ended.stopped === null ? {} : { stopped: ended.stopped }),
    ...(ended.error === null || ended.exitCode !== null ? {} : { error_message: ended.error.message }),
    stdout: stdout(),
    stderr: stderr(),
  };
}

function collectEnds(stream: RunningProcess["stdout"]): () => string {
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);
  let skipped = 0;
  stream?.on("data", (chunk: Buffer) => {
    const room = maxEndBytes - head.length;
    if (room > 0) head = Buffer.concat([head, chunk.subarray(0, room)]);
    if (chunk.length <= room) return;
    const rest = Buffer.concat([tail, chunk.subarray(Math.max(0, room))]);
    skipped += Math.max(0, rest.length - maxEndBytes);
    tail = rest.subarray(Math.max(0, rest.length - maxEndBytes));
  });
  return () => `${head.toString("utf8")}${skipped > 0 ? `\n[${skipped} bytes omitted]\n` : ""}${tail.toString("utf8")}`;
}
