import { RunFailure } from "../../scaffold/run-failure.ts";
import type { Turn } from "./definition.ts";

/** Refuses options that only claude supports, instead of silently ignoring a limit or a missing tool. */
export function refuseClaudeOnlyOptions(name: string, { invocation }: Pick<Turn, "invocation">): void {
  const { budget, max_turns, mcp_servers = {} } = invocation.agent;
  const given = [
    ...(budget === undefined ? [] : ["budget"]),
    ...(max_turns === undefined ? [] : ["max_turns"]),
    ...(Object.keys(mcp_servers).length === 0 ? [] : ["mcp_servers"]),
  ];
  if (given.length === 0) return;
  throw new RunFailure(
    "refused",
    `${name} does not support ${given.join(", ")}; only claude does. Remove it from the agent, or use claude.`,
  );
}
