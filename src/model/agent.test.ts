import { expect, test } from "vitest";
import { agentSchema } from "./agent.ts";

const withLimits = (limits: object) => agentSchema.safeParse({ name: "a", type: "procedural", command: "x", limits });

test("accepts limits that are positive integers, and rejects anything else", () => {
  expect(withLimits({ disk_bytes: 1 << 30, files: 100_000, memory_bytes: 1 }).success).toBe(true);
  expect(withLimits({}).success).toBe(true);
  for (const wrong of [0, -1, 1.5, "1g", null]) expect(withLimits({ disk_bytes: wrong }).success).toBe(false);
});

test("rejects an unknown limit instead of ignoring it", () => {
  expect(withLimits({ disk: 1 }).error?.issues).toMatchObject([{ code: "unrecognized_keys", path: ["limits"] }]);
});
