import { expect, test } from "vitest";
import { agentSchema, type Agent } from "../../../model/agent.ts";
import { toSdkOptions } from "./options.ts";

const agentOf = (fields: Partial<Agent> = {}): Agent =>
  agentSchema.parse({ name: "a", type: "autonomous", executor: "claude-sdk", ...fields });
const optionsOf = (fields: Partial<Agent> = {}, more: Partial<Parameters<typeof toSdkOptions>[1]> = {}) =>
  toSdkOptions(agentOf(fields), { attended: false, ...more });

test.each(["default", "acceptEdits", "bypassPermissions", "plan"] as const)(
  "passes the mode %s to the SDK unchanged",
  (mode) => {
    const options = optionsOf({ permissions: { mode } });
    expect(options.permissionMode).toBe(mode);
    expect("allowDangerouslySkipPermissions" in options).toBe(mode === "bypassPermissions");
  },
);

test("accepts edits, allows and denies no tools, and loads nothing from the project by default", () => {
  expect(optionsOf()).toMatchObject({
    permissionMode: "acceptEdits",
    allowedTools: [],
    disallowedTools: [],
    settingSources: [],
    strictMcpConfig: true,
    mcpServers: {},
    verbatimPrompts: true,
  });
  expect(optionsOf()).not.toHaveProperty("model");
  expect(optionsOf({ trust_project_settings: true })).toMatchObject({
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
  expect(optionsOf({ permissions })).toMatchObject({
    allowedTools: permissions.allowed_tools,
    disallowedTools: permissions.denied_tools,
  });
});

test("never asks a person to leave plan mode", () => {
  expect(optionsOf({ permissions: { mode: "plan" } }, { attended: true }).disallowedTools).toEqual(["ExitPlanMode"]);
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
  expect(optionsOf(system_prompt === undefined ? {} : { system_prompt }).systemPrompt).toEqual(expected);
});

test("passes on what is left of the limits", () => {
  const fields: Partial<Agent> = { model: "sonnet", max_turns: 5, budget: { cost_usd: 1 } };
  expect(optionsOf(fields)).toMatchObject({ model: "sonnet", maxTurns: 5, maxBudgetUsd: 1 });
  expect(optionsOf(fields, { spent: { turns: 2, cost_usd: 0.25 } })).toMatchObject({ maxTurns: 3, maxBudgetUsd: 0.75 });
  const over = optionsOf(fields, { spent: { turns: 9, cost_usd: 2 } });
  expect(over.maxTurns).toBe(1);
  expect(over.maxBudgetUsd).toBeGreaterThan(0);
});
