import { expect, test } from "vitest";
import { agentSchema } from "./agent.ts";

const withLimits = (limits: object) => agentSchema.safeParse({ name: "a", type: "procedural", command: "x", limits });

test("limits of an agent are whole numbers above zero, any of them", () => {
  expect(withLimits({ disk_bytes: 1 << 30, files: 100_000, memory_bytes: 1 }).success).toBe(true);
  expect(withLimits({}).success).toBe(true);
  for (const wrong of [0, -1, 1.5, "1g", null]) expect(withLimits({ disk_bytes: wrong }).success).toBe(false);
});

test("a limit that there is not is a fault, and not one that nobody keeps", () => {
  expect(withLimits({ disk: 1 }).error?.issues).toMatchObject([{ code: "unrecognized_keys", path: ["limits"] }]);
});
