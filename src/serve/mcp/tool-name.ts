import { createHash } from "node:crypto";

/** Model APIs allow 64 characters, and clients add a prefix such as `mcp__drover__`. */
const maxLength = 48;
const prefix = "run_";

/**
 * Names the tool that runs an agent. A name that model APIs would reject is rewritten and gets a hash of the original, so
 * an agent's tool name does not depend on which other agents exist.
 */
export function toToolName(agent: string): string {
  if (/^[\w-]+$/.test(agent) && prefix.length + agent.length <= maxLength) return `${prefix}${agent}`;
  const hash = createHash("sha256").update(agent).digest("hex").slice(0, 6);
  const slug = agent
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .replaceAll(/[^\w-]+/g, "_")
    .replaceAll(/^_+|_+$/g, "")
    .slice(0, maxLength - prefix.length - hash.length - 1);
  return `${prefix}${slug === "" ? "" : `${slug}_`}${hash}`;
}
