import { relative, resolve } from "node:path";
import type { Effect } from "../../../model/tool.ts";
import { type Fields, toFields, toText } from "../clients/fields.ts";

/**
 * The effects of Claude Code's built-in tools. Starting a subagent counts as `read`, because its calls are checked
 * separately.
 */
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

export const builtInTools: readonly string[] = Object.keys(effectsByTool);

/** An unknown tool counts as `execute`. `readOnly` lists MCP tools that their servers declare as read-only. */
export function getEffect(tool: string, readOnly: ReadonlySet<string>): Effect {
  if (readOnly.has(tool)) return "read";
  return Object.hasOwn(effectsByTool, tool) ? effectsByTool[tool]! : "execute";
}

const pathFields = ["file_path", "notebook_path", "path"] as const;

/**
 * Makes paths in the work directory relative. Claude Code passes relative or absolute paths, and the directory differs
 * between runners, but the same input must produce the same question, so that Drover finds its answer.
 */
export function withRelativePaths(input: unknown, workDir: string): unknown {
  if (typeof input !== "object" || input === null) return input;
  const relativePaths = pathFields.flatMap((field): [string, string][] => {
    const path = toText(toFields(input)[field]);
    return path.startsWith(`${workDir}/`) ? [[field, path.slice(workDir.length + 1)]] : [];
  });
  return { ...input, ...Object.fromEntries(relativePaths) };
}

/** Reports whether the input names a path outside the work directory. */
export function namesOutsidePath(input: Fields, workDir: string): boolean {
  const path = pathFields.map((field) => toText(input[field])).find((value) => value !== "") ?? "";
  if (path === "") return false;
  const fromWorkDir = relative(workDir, resolve(workDir, path));
  return fromWorkDir === ".." || fromWorkDir.startsWith("../");
}

const text = { type: "string" };
const object = (properties: Record<string, unknown>, required: readonly string[]): Record<string, unknown> => ({
  type: "object",
  properties,
  required,
});

/** Schemas to check edited input against, with the fields that each tool requires. */
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
