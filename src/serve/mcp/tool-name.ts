import { createHash } from "node:crypto";

/** Model services take 64 characters, and clients put a prefix such as `mcp__drover__` before ours. */
const longest = 48;
const prefix = "run_";

/**
 * The name of the tool that runs an agent. A name that model services would refuse is rewritten and gets a hash of the
 * original, so that each agent keeps its tool's name whatever other agents there are.
 */
export function toolName(agent: string): string {
  if (/^[\w-]+$/.test(agent) && prefix.length + agent.length <= longest) return `${prefix}${agent}`;
  const hash = createHash("sha256").update(agent).digest("hex").slice(0, 6);
  const slug = agent
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .replaceAll(/[^\w-]+/g, "_")
    .replaceAll(/^_+|_+$/g, "")
    .slice(0, longest - prefix.length - hash.length - 1);
  return `${prefix}${slug === "" ? "" : `${slug}_`}${hash}`;
}
