import type { Agent } from "../../../model/agent.ts";
import type { PermissionMode } from "./definition.ts";
import { toTomlString } from "./toml.ts";

type Tools = Partial<Pick<NonNullable<Agent["permissions"]>, "allowed_tools" | "denied_tools">>;

/**
 * Returns the rules for gemini's policy engine, as TOML. Gemini denies calls that it would have to ask about, because a
 * run has no person to answer. `plan` and `default` allow only reading.
 */
export function toGeminiPolicy(mode: PermissionMode, { allowed_tools = [], denied_tools = [] }: Tools): string {
  const rules = [
    ...(mode === "acceptEdits" ? [editRules] : []),
    ...(mode === "bypassPermissions" ? [formatRule({ toolName: "*" }, "allow", 500)] : []),
    ...(mode === "plan" ? [] : allowed_tools.map((tool) => formatRule(parseTool(tool), "allow", 600))),
    ...denied_tools.map((tool) => formatRule(parseTool(tool), "deny", 900)),
  ];
  return `${rules.join("\n")}\n`;
}

/** Allows edits only in the workspace, as gemini's own mode for edits does. */
const editRules = `[[rule]]
toolName = ["write_file", "replace"]
decision = "allow"
priority = 500

[[safety_checker]]
toolName = ["write_file", "replace"]
priority = 500
[safety_checker.checker]
type = "in-process"
name = "allowed-path"
required_context = ["environment"]
`;

interface Tool {
  toolName: string;
  /** The start of a shell command. */
  commandPrefix?: string;
}

/** Parses `write_file`, or `run_shell_command(git status)`. */
function parseTool(tool: string): Tool {
  const [, toolName, commandPrefix] = /^([^(]+)\((.*)\)$/s.exec(tool) ?? [];
  return toolName === undefined || commandPrefix === undefined ? { toolName: tool } : { toolName, commandPrefix };
}

function formatRule({ toolName, commandPrefix }: Tool, decision: "allow" | "deny", priority: number): string {
  return [
    "[[rule]]",
    `toolName = ${toTomlString(toolName)}`,
    ...(commandPrefix === undefined ? [] : [`commandPrefix = ${toTomlString(commandPrefix)}`]),
    `decision = "${decision}"`,
    `priority = ${priority}`,
    ...(decision === "allow" && toolName === "*" ? ["allowRedirection = true"] : []),
    "",
  ].join("\n");
}
