import type { Tool, ToolResponse, ToolContext } from "../model/tool.ts";
import { suggest } from "../model/suggest.ts";
import { deleteTool } from "./delete-file.ts";
import { listTool } from "./list-files.ts";
import { patchTool } from "./patch-file.ts";
import { readTool } from "./read-file.ts";
import { searchTool } from "./search-files.ts";
import type { Workspace } from "./workspace.ts";
import { writeTool } from "./write-file.ts";

const definitions = [readTool, writeTool, patchTool, deleteTool, listTool, searchTool];

export function createFileTools(workspace: Workspace): Tool[] {
  return definitions.map((tool) => tool.bind(workspace));
}

/** Makes one call in the format of `drover file-tools`, which has the tool's name next to its input. */
export async function callTool(tools: readonly Tool[], call: unknown, context: ToolContext): Promise<ToolResponse> {
  if (typeof call !== "object" || call === null || Array.isArray(call))
    return invalidCall('The call must be a JSON object such as {"tool":"file.read","path":"a.txt"}.');
  const { tool: name, ...input } = call as Record<string, unknown>;
  if (typeof name !== "string")
    return invalidCall(`"tool" is missing. Set it to one of ${tools.map((tool) => tool.name).join(", ")}.`);
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool) return tool.run(input, context);
  const names = tools.map((candidate) => candidate.name);
  const suggestion = suggest(name, names);
  return {
    ok: false,
    error: {
      code: "unknown_tool",
      message: `Unknown tool: ${name}.${suggestion ? ` Did you mean ${suggestion}?` : ""} Available tools: ${names.join(", ")}.`,
    },
  };
}

function invalidCall(message: string): ToolResponse {
  return { ok: false, error: { code: "invalid_input", message } };
}
