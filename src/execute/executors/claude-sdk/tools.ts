import { relative, resolve } from "node:path";
import type { Effect } from "../../../model/tool.ts";
import { type Fields, fieldsOf, textOf } from "../clients/fields.ts";

/** What Claude Code's own tools do. Calls that a subagent makes are judged by themselves, so starting one only reads. */
const effectsByTool: Readonly<Record<string, Effect>> = {
  Read: "read",
  Glob: "read",
  Grep: "read",
  LS: "read",
  LSP: "read",
  NotebookRead: "read",
  TodoWrite: "read",
  Task: "read",
  Agent: "read",
  TaskOutput: "read",
  BashOutput: "read",
  TaskStop: "read",
  ListAgents: "read",
  SendMessage: "read",
  Skill: "read",
  ToolSearch: "read",
  ReportFindings: "read",
  CronList: "read",
  EnterPlanMode: "read",
  ListMcpResourcesTool: "read",
  ReadMcpResourceTool: "read",
  Edit: "edit",
  MultiEdit: "edit",
  Write: "edit",
  NotebookEdit: "edit",
  Bash: "execute",
  Monitor: "execute",
  KillShell: "execute",
  Workflow: "execute",
  CronCreate: "execute",
  CronDelete: "execute",
  ScheduleWakeup: "execute",
  EnterWorktree: "execute",
  ExitWorktree: "execute",
  ExitPlanMode: "execute",
  AskUserQuestion: "execute",
  WebFetch: "network",
  WebSearch: "network",
};

export const ownTools: readonly string[] = Object.keys(effectsByTool);

/** A tool that nobody knows does anything. `readOnly`: MCP tools whose server says that they only read. */
export function effectOf(tool: string, readOnly: ReadonlySet<string>): Effect {
  if (readOnly.has(tool)) return "read";
  return Object.hasOwn(effectsByTool, tool) ? effectsByTool[tool]! : "execute";
}

const pathFields = ["file_path", "notebook_path", "path"] as const;

/**
 * Paths in the work directory as seen from it. Claude Code shows them so, or whole; and on another runner the directory
 * lies elsewhere. An answer is for one input, and has to be known again.
 */
export function withRelativePaths(input: unknown, workDir: string): unknown {
  if (typeof input !== "object" || input === null) return input;
  const shorter = pathFields.flatMap((field): [string, string][] => {
    const path = textOf(fieldsOf(input)[field]);
    return path.startsWith(`${workDir}/`) ? [[field, path.slice(workDir.length + 1)]] : [];
  });
  return { ...input, ...Object.fromEntries(shorter) };
}

/** Whether the path that a call names lies outside the work directory. */
export function leavesDirectory(input: Fields, workDir: string): boolean {
  const path = pathFields.map((field) => textOf(input[field])).find((one) => one !== "") ?? "";
  if (path === "") return false;
  const way = relative(workDir, resolve(workDir, path));
  return way === ".." || way.startsWith("../");
}

const text = { type: "string" };
const object = (properties: Record<string, unknown>, required: readonly string[]): Record<string, unknown> => ({
  type: "object",
  properties,
  required,
});

/** Where edited input can be checked: the fields without which a tool does nothing. */
export const inputSchemas: Readonly<Record<string, Record<string, unknown>>> = {
  Bash: object({ command: { type: "string", minLength: 1 }, description: text, timeout: { type: "number" } }, [
    "command",
  ]),
  Write: object({ file_path: text, content: text }, ["file_path", "content"]),
  Edit: object({ file_path: text, old_string: text, new_string: text, replace_all: { type: "boolean" } }, [
    "file_path",
    "old_string",
    "new_string",
  ]),
  WebFetch: object({ url: text, prompt: text }, ["url", "prompt"]),
  WebSearch: object({ query: text }, ["query"]),
  AskUserQuestion: object({ questions: { type: "array" }, answers: { type: "object", additionalProperties: text } }, [
    "questions",
    "answers",
  ]),
};
