import type { Agent } from "../../../model/agent.ts";
import type { Effect } from "../../../model/tool.ts";
import { allowedEffects } from "../loop/permissions.ts";

export type Mode = keyof typeof allowedEffects;

export interface OptionsInput {
  /** Whether a person can answer the agent's questions. */
  attended: boolean;
  mcpServers?: Record<string, unknown>;
  /** The usage of this run's earlier attempts. */
  spent?: { turns: number; cost_usd: number };
}

export function getMode(agent: Agent): Mode {
  return agent.permissions?.mode ?? "acceptEdits";
}

/** Converts an agent to options of the Agent SDK. */
export function toSdkOptions(agent: Agent, { attended, mcpServers = {}, spent }: OptionsInput) {
  const mode = getMode(agent);
  const { allowed_tools = [], denied_tools = [] } = agent.permissions ?? {};
  const isTrusted = agent.trust_project_settings;
  return {
    systemPrompt: toSystemPrompt(agent.system_prompt),
    // Always set, because the SDK would otherwise choose the mode.
    permissionMode: mode,
    ...(mode === "bypassPermissions" ? { allowDangerouslySkipPermissions: true } : {}),
    allowedTools: [...allowed_tools],
    // Claude Code must not leave plan mode. Without a person it cannot, because leaving needs an approval.
    disallowedTools: [...denied_tools, ...(mode === "plan" && attended ? ["ExitPlanMode"] : [])],
    settingSources: isTrusted ? ["project", "local"] : [],
    strictMcpConfig: !isTrusted,
    mcpServers,
    ...(agent.model === undefined ? {} : { model: agent.model }),
    ...(agent.max_turns === undefined ? {} : { maxTurns: Math.max(1, agent.max_turns - (spent?.turns ?? 0)) }),
    ...(agent.budget?.cost_usd === undefined
      ? {}
      : { maxBudgetUsd: Math.max(minUsd, agent.budget.cost_usd - (spent?.cost_usd ?? 0)) }),
    // Prompts are built from parameters, so `@file` and `/command` in them must not be expanded.
    verbatimPrompts: true,
    includePartialMessages: true,
  };
}

/** The SDK rejects a budget of 0. */
const minUsd = 0.000_001;

function toSystemPrompt(prompt: Agent["system_prompt"]) {
  if (typeof prompt === "string" && prompt.trim() !== "") return prompt;
  const append = typeof prompt === "object" ? prompt.append : undefined;
  return { type: "preset", preset: "claude_code", ...(append === undefined ? {} : { append }) } as const;
}

/** Reports whether the mode allows the effect without asking. */
export function allows(mode: Mode, effect: Effect): boolean {
  return allowedEffects[mode].includes(effect);
}
