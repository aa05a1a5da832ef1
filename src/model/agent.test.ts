import { expect, test } from "vitest";
import { agentSchema } from "./agent.ts";

const parseLimits = (limits: object) => agentSchema.safeParse({ name: "a", type: "procedural", command: "x", limits });

test("accepts limits that are positive integers, and rejects anything else", () => {
  expect(parseLimits({ disk_bytes: 1 << 30, files: 100_000, memory_bytes: 1 }).success).toBe(true);
  expect(parseLimits({}).success).toBe(true);
  for (const wrong of [0, -1, 1.5, "1g", null]) expect(parseLimits({ disk_bytes: wrong }).success).toBe(false);
});

test("rejects an unknown limit instead of ignoring it", () => {
  expect(parseLimits({ disk: 1 }).error?.issues).toMatchObject([{ code: "unrecognized_keys", path: ["limits"] }]);
});
