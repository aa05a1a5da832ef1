import { expect, test } from "vitest";
import { agentSchema, type Agent } from "../../../model/agent.ts";
import { toSdkOptions } from "./options.ts";

const createAgent = (fields: Partial<Agent> = {}): Agent =>
  agentSchema.parse({ name: "a", type: "autonomous", executor: "claude-sdk", ...fields });
const buildOptions = (fields: Partial<Agent> = {}, overrides: Partial<Parameters<typeof toSdkOptions>[1]> = {}) =>
  toSdkOptions(createAgent(fields), { attended: false, ...overrides });

test.each(["default", "acceptEdits", "bypassPermissions", "plan"] as const)(
  "passes the mode %s to the SDK unchanged",
  (mode) => {
    const options = buildOptions({ permissions: { mode } });
    expect(options.permissionMode).toBe(mode);
    expect("allowDangerouslySkipPermissions" in options).toBe(mode === "bypassPermissions");
  },
);

test("accepts edits, allows and denies no tools, and loads nothing from the project by default", () => {
  expect(buildOptions()).toMatchObject({
    permissionMode: "acceptEdits",
    allowedTools: [],
    disallowedTools: [],
    settingSources: [],
    strictMcpConfig: true,
    mcpServers: {},
    verbatimPrompts: true,
  });
  expect(buildOptions()).not.toHaveProperty("model");
  expect(buildOptions({ trust_project_settings: true })).toMatchObject({
    settingSources: ["project", "local"],
    strictMcpConfig: false,
  });
});

test("passes allowed and denied tools to the SDK, wildcards included", () => {
  const permissions = {
    mode: "default" as const,
    allowed_tools: ["Read", "mcp__posthog__*"],
    denied_tools: ["Bash(rm *)"],
  };
  expect(buildOptions({ permissions })).toMatchObject({
    allowedTools: permissions.allowed_tools,
    disallowedTools: permissions.denied_tools,
  });
});

test("never asks a person to leave plan mode", () => {
  expect(buildOptions({ permissions: { mode: "plan" } }, { attended: true }).disallowedTools).toEqual(["ExitPlanMode"]);
});

test.each([
  [undefined, { type: "preset", preset: "claude_code" }],
  [" ", { type: "preset", preset: "claude_code" }],
  ["Be brief.", "Be brief."],
  [{ preset: "claude_code" as const }, { type: "preset", preset: "claude_code" }],
  [
    { preset: "claude_code" as const, append: "Be brief." },
    { type: "preset", preset: "claude_code", append: "Be brief." },
  ],
])("converts the system prompt %j", (system_prompt, expected) => {
  expect(buildOptions(system_prompt === undefined ? {} : { system_prompt }).systemPrompt).toEqual(expected);
});

test("passes the remaining turns and budget to the SDK", () => {
  const fields: Partial<Agent> = { model: "sonnet", max_turns: 5, budget: { cost_usd: 1 } };
  expect(buildOptions(fields)).toMatchObject({ model: "sonnet", maxTurns: 5, maxBudgetUsd: 1 });
  expect(buildOptions(fields, { spent: { turns: 2, cost_usd: 0.25 } })).toMatchObject({
    maxTurns: 3,
    maxBudgetUsd: 0.75,
  });
  const over = buildOptions(fields, { spent: { turns: 9, cost_usd: 2 } });
  expect(over.maxTurns).toBe(1);
  expect(over.maxBudgetUsd).toBeGreaterThan(0);
});
