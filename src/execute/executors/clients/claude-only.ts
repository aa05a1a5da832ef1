import { RunFailure } from "../../scaffold/run-failure.ts";
import type { Turn } from "./definition.ts";

/** A limit that nobody keeps, or a tool that is not there, would be missed too late. */
export function refuseClaudeOnly(name: string, { invocation }: Pick<Turn, "invocation">): void {
  const { budget, max_turns, mcp_servers = {} } = invocation.agent;
  const given = [
    ...(budget === undefined ? [] : ["budget"]),
    ...(max_turns === undefined ? [] : ["max_turns"]),
    ...(Object.keys(mcp_servers).length === 0 ? [] : ["mcp_servers"]),
  ];
  if (given.length === 0) return;
  throw new RunFailure(
    "refused",
    `${name} cannot be given ${given.join(", ")}: only claude can. Leave that out of the agent, or use claude.`,
  );
}
