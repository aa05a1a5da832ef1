import type { Tool, ToolAnswer, ToolContext } from "../model/tool.ts";
import { suggest } from "../model/suggest.ts";
import { deleteTool } from "./delete-file.ts";
import { listTool } from "./list-files.ts";
import { patchTool } from "./patch-file.ts";
import { readTool } from "./read-file.ts";
import { searchTool } from "./search-files.ts";
import type { Workspace } from "./workspace.ts";
import { writeTool } from "./write-file.ts";

const table = [readTool, writeTool, patchTool, deleteTool, listTool, searchTool];

export function fileTools(workspace: Workspace): Tool[] {
  return table.map((tool) => tool.in(workspace));
}

/** Makes one call in the format of `drover file-tools`: the tool's name beside its input. */
export async function callTool(tools: readonly Tool[], call: unknown, context: ToolContext): Promise<ToolAnswer> {
  if (typeof call !== "object" || call === null || Array.isArray(call))
    return refused('The call must be a JSON object such as {"tool":"file.read","path":"a.txt"}.');
  const { tool: name, ...input } = call as Record<string, unknown>;
  if (typeof name !== "string")
    return refused(`"tool" is missing: one of ${tools.map((tool) => tool.name).join(", ")}.`);
  const tool = tools.find((each) => each.name === name);
  if (tool) return tool.run(input, context);
  const near = suggest(
    name,
    tools.map((each) => each.name),
  );
  return {
    ok: false,
    error: {
      code: "unknown_tool",
      message: `There is no tool ${name}.${near ? ` Did you mean ${near}?` : ""} There are ${tools.map((each) => each.name).join(", ")}.`,
    },
  };
}

function refused(message: string): ToolAnswer {
  return { ok: false, error: { code: "invalid_input", message } };
}
