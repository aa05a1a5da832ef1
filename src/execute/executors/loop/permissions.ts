import type { Agent } from "../../../model/agent.ts";
import type { RunEvent } from "../../../model/event.ts";
import type { Effect, Tool } from "../../../model/tool.ts";

type Permissions = NonNullable<Agent["permissions"]>;
type Mode = Permissions["mode"];

/** The effects that each mode allows without asking. `plan` does not even offer other tools. */
export const allowedEffects: Record<Mode, readonly Effect[]> = {
  plan: ["read"],
  default: ["read"],
  acceptEdits: ["read", "edit"],
  bypassPermissions: ["read", "edit", "execute", "network"],
};

export interface ToolGate {
  /** The tools the model can call. */
  offered: Tool[];
  needsApproval(tool: Tool): boolean;
}

/** Offers all tools except `denied_tools`. Tools in `allowed_tools` need no approval. */
export function gateTools(tools: readonly Tool[], permissions: Agent["permissions"]): ToolGate {
  const { mode = "acceptEdits", allowed_tools = [], denied_tools = [] } = permissions ?? {};
  return {
    offered: tools.filter(
      ({ name, effect }) => !matchesAny(name, denied_tools) && (mode !== "plan" || effect === "read"),
    ),
    needsApproval: ({ name, effect }) => !allowedEffects[mode].includes(effect) && !matchesAny(name, allowed_tools),
  };
}

/**
 * A trailing `*` matches any suffix, and `mcp__SERVER` matches all tools of that server. A tool matches by its name in
 * Drover or by the spelling that model services use, with underscores for dots.
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

/** Returns a warning for each wildcard or MCP tool in the permissions that matches no tool. */
export function findUnmatchedPermissions(permissions: Agent["permissions"], tools: readonly string[]): RunEvent[] {
  return [...(permissions?.allowed_tools ?? []), ...(permissions?.denied_tools ?? [])]
    .map((pattern) => pattern.replace(/\(.*$/s, ""))
    .filter((pattern) => pattern.includes("*") || pattern.startsWith("mcp__"))
    .filter((pattern) => !tools.some((name) => matchesAny(name, [pattern])))
    .map((pattern) => ({
      type: "system",
      subtype: "unmatched_permission",
      data: {
        pattern,
        message: `${pattern} in the agent's permissions matches no tool. Check its spelling, and whether its MCP server started.`,
      },
    }));
}
