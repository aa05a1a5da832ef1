import { expect, test } from "vitest";
import { getNoRetryReason } from "./no-retry-reason.ts";
import type { Agent } from "./queries.ts";

test("a run can be submitted again only if its agent exists, and never if it is a command of drover exec", () => {
  const echo = { name: "echo" } as Agent;
  expect(getNoRetryReason({ agent_name: "echo" }, echo)).toBeNull();
  expect(getNoRetryReason({ agent_name: "echo" }, undefined)).toBe("This agent no longer exists");
  expect(getNoRetryReason({ agent_name: "exec" }, undefined)).toContain("has no agent");
});
