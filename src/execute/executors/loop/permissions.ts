import type { Agent } from "../../../model/agent.ts";
import type { RunEvent } from "../../../model/event.ts";
import type { Effect, Tool } from "../../../model/tool.ts";

type Permissions = NonNullable<Agent["permissions"]>;
type Mode = Permissions["mode"];

/** What a mode does not allow by itself has to be asked for; `plan` does not even offer it. */
export const allowedEffects: Record<Mode, readonly Effect[]> = {
  plan: ["read"],
  default: ["read"],
  acceptEdits: ["read", "edit"],
  bypassPermissions: ["read", "edit", "execute", "network"],
};

export interface ToolGate {
  /** The tools the model can call. */
  offered: Tool[];
  needsAsking(tool: Tool): boolean;
}

/** `allowed_tools` pre-approves, `denied_tools` removes. */
export function gateTools(tools: readonly Tool[], permissions: Agent["permissions"]): ToolGate {
  const { mode = "acceptEdits", allowed_tools = [], denied_tools = [] } = permissions ?? {};
  return {
    offered: tools.filter(
      ({ name, effect }) => !matchesAny(name, denied_tools) && (mode !== "plan" || effect === "read"),
    ),
    needsAsking: ({ name, effect }) => !allowedEffects[mode].includes(effect) && !matchesAny(name, allowed_tools),
  };
}

/**
 * `*` stands for any rest of a name, and `mcp__SERVER` for all tools of that server. A tool is known by its own name,
 * and as model services spell it.
 */
export function matchesAny(name: string, patterns: readonly string[]): boolean {
  const spellings = [name, name.replaceAll(".", "_")];
  return patterns.some((pattern) =>
    spellings.some((spelling) => {
      if (pattern.endsWith("*")) return spelling.startsWith(pattern.slice(0, -1));
      return spelling === pattern || (pattern.startsWith("mcp__") && spelling.startsWith(`${pattern}__`));
    }),
  );
}

/** Warns about each wildcard or MCP tool in an agent's permissions that matches no tool: misspelt, or its server failed. */
export function warnOfUnmatched(permissions: Agent["permissions"], tools: readonly string[]): RunEvent[] {
  return [...(permissions?.allowed_tools ?? []), ...(permissions?.denied_tools ?? [])]
    .map((pattern) => pattern.replace(/\(.*$/s, ""))
    .filter((pattern) => pattern.includes("*") || pattern.startsWith("mcp__"))
    .filter((pattern) => !tools.some((name) => matchesAny(name, [pattern])))
    .map((pattern) => ({
      type: "system",
      subtype: "unmatched_permission",
      data: { pattern, message: `${pattern} in the agent's permissions matches no tool that is known here.` },
    }));
}
