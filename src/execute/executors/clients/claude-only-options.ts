import { RunFailure } from "../../scaffold/run-failure.ts";
import type { Turn } from "./definition.ts";

/** Rejects options that only claude supports, instead of silently ignoring a limit or a server. */
export function rejectClaudeOnlyOptions(name: string, { invocation }: Pick<Turn, "invocation">): void {
  const { budget, max_turns, mcp_servers = {} } = invocation.agent;
  const unsupported = [
    ...(budget === undefined ? [] : ["budget"]),
    ...(max_turns === undefined ? [] : ["max_turns"]),
    ...(Object.keys(mcp_servers).length === 0 ? [] : ["mcp_servers"]),
  ];
  if (unsupported.length === 0) return;
  throw new RunFailure(
    "refused",
    `${name} does not support ${unsupported.join(", ")}; only claude does. Remove ${unsupported.length > 1 ? "them" : "it"} from the agent, or use claude.`,
  );
}
