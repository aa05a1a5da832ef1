import type { Invocation } from "../../model/executor.ts";

/**
 * Where a run works:
 * - `plain`: a command in the given directory, which others may use at the same time
 * - `in_place`: in an existing directory, locked for this run
 * - `scratch`: in a directory of its session
 */
export type WorkspaceKind = "plain" | "in_place" | "scratch";

export function getWorkspaceKind({ agent, project_dir }: Pick<Invocation, "agent" | "project_dir">): WorkspaceKind {
  if (agent.type === "procedural") return "plain";
  return agent.workspace ?? (project_dir === null ? "scratch" : "in_place");
}
