import type { Agent } from "../../../model/agent.ts";
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

/** `allowed_tools` pre-approves, `denied_tools` removes; both take `*` for any rest of a name. */
export function gateTools(tools: readonly Tool[], permissions: Agent["permissions"]): ToolGate {
  const { mode = "acceptEdits", allowed_tools = [], denied_tools = [] } = permissions ?? {};
  return {
    offered: tools.filter(
      ({ name, effect }) => !matchesAny(name, denied_tools) && (mode !== "plan" || effect === "read"),
    ),
    needsAsking: ({ name, effect }) => !allowedEffects[mode].includes(effect) && !matchesAny(name, allowed_tools),
  };
}

/** A tool is known by its own name, and as model services spell it. */
export function matchesAny(name: string, patterns: readonly string[]): boolean {
  const spellings = [name, name.replaceAll(".", "_")];
  return patterns.some((pattern) =>
    spellings.some((spelling) =>
      pattern.endsWith("*") ? spelling.startsWith(pattern.slice(0, -1)) : spelling === pattern,
    ),
  );
}
