import type { Invocation } from "../../model/executor.ts";

/**
 * Where a run works. `plain`: a command, in the directory it was given, beside whatever else works there.
 * `in_place`: alone in somebody's directory. `scratch`: in a folder of its session's own.
 */
export type WorkspaceKind = "plain" | "in_place" | "scratch";

export function workspaceKindOf({ agent, project_dir }: Pick<Invocation, "agent" | "project_dir">): WorkspaceKind {
  if (agent.type === "procedural") return "plain";
  return agent.workspace ?? (project_dir === null ? "scratch" : "in_place");
}
