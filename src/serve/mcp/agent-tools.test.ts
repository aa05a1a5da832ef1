import { expect, test } from "vitest";
import { createAgent } from "../../../test/fixtures/dispatch/drive.ts";
import type { Agent } from "../../model/agent.ts";
import type { FlatAgent } from "../../wire/client.ts";
import { buildAgentTools, toSubmission } from "./agent-tools.ts";
import { toToolName } from "./tool-name.ts";

const createFlatAgent = (name: string, changes: Partial<Agent> = {}, runner_id: string | null = null): FlatAgent => ({
  ...createAgent(name, { expose: "tool", ...changes }),
  source: runner_id === null ? "file" : "runner",
  runner_id,
});

test("tool names are valid for model APIs and unique per agent", () => {
  expect(toToolName("line-count")).toBe("run_line-count");
  expect(toToolName("code.review")).toMatch(/^run_code_review_[0-9a-f]{6}$/);
  expect(toToolName("Größe")).toMatch(/^run_Gro_e_[0-9a-f]{6}$/);
  const agents = ["a.b", "a_b", "a-b", "A.b", "日本", "日木", "x".repeat(200), `${"x".repeat(199)}y`, "é", "e"];
  const names = agents.map(toToolName);
  expect(new Set(names).size).toBe(agents.length);
  for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,48}$/);
});

test("only exposed agents are tools, and a file's agent hides runners' agents of the same name", () => {
  const tools = buildAgentTools([
    createFlatAgent("both"),
    createFlatAgent("both", {}, "r1"),
    createFlatAgent("hidden", { expose: undefined }),
    createFlatAgent("one", {}, "r1"),
    createFlatAgent("two", {}, "r1"),
    createFlatAgent("two", {}, "r2"),
  ]);
  expect(tools.map(({ agent_name }) => agent_name)).toEqual(["both", "one", "two@r1", "two@r2"]);
  expect(new Set(tools.map(({ name }) => name)).size).toBe(4);
});

test("an autonomous agent takes a prompt and separate parameters", () => {
  const autonomous = { type: "autonomous", command: null } as const;
  const [plain, ready, full] = buildAgentTools([
    createFlatAgent("plain", autonomous),
    createFlatAgent("ready", { ...autonomous, first_message: "Go." }),
    createFlatAgent("full", {
      ...autonomous,
      parameters_schema: {
        type: "object",
        properties: { prompt: { $ref: "#/$defs/short" } },
        required: ["prompt"],
        $defs: { short: { type: "string" } },
      },
    }),
  ]);
  expect(plain?.inputSchema).toMatchObject({ properties: { prompt: { type: "string" } }, required: ["prompt"] });
  expect(ready?.inputSchema).not.toHaveProperty("required");
  expect(full?.inputSchema).toMatchObject({
    properties: { prompt: { type: "string" }, parameters: { properties: { prompt: { $ref: "#/$defs/short" } } } },
    required: ["parameters"],
    $defs: { short: { type: "string" } },
  });
  expect(toSubmission(full!, { prompt: "do", parameters: { prompt: "x" } })).toEqual({
    agent_name: "full",
    prompt: "do",
    parameters: { prompt: "x" },
  });
});
