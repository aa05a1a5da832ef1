import { expect, test } from "vitest";
import { agentSchema } from "../../../model/agent.ts";
import { codex } from "./codex.ts";
import { createTurn } from "./fixtures/turns.ts";
import { gemini } from "./gemini.ts";

const limits = [
  { budget: { cost_usd: 1 } },
  { max_turns: 3 },
  { mcp_servers: { one: { command: "server" } } },
  { max_turns: 3, budget: { cost_usd: 1 } },
];

test.each([codex, gemini].flatMap(({ definition }) => limits.map((limit) => ({ definition, limit }))))(
  "$definition.name refuses an agent with $limit, and names the unsupported options",
  async ({ definition, limit }) => {
    const agent = agentSchema.parse({ name: "a", type: "autonomous", ...limit });
    const prepared = (async () => definition.prepare(createTurn({ agent })))();
    await expect(prepared).rejects.toMatchObject({ reason: "refused" });
    for (const key of Object.keys(limit))
      await expect(prepared).rejects.toThrow(new RegExp(`${definition.name} does not support .*${key}`));
  },
);
