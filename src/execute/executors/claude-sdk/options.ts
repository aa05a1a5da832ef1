import type { Agent } from "../../../model/agent.ts";
import type { Effect } from "../../../model/tool.ts";
import { allowedEffects } from "../loop/permissions.ts";

export type Mode = keyof typeof allowedEffects;

export interface OptionsInput {
  /** Whether a person can answer its questions. */
  attended: boolean;
  mcpServers?: Record<string, unknown>;
  /** What earlier attempts of this run have used. */
  spent?: { turns: number; cost_usd: number };
}

export function modeOf(agent: Agent): Mode {
  return agent.permissions?.mode ?? "acceptEdits";
}

/** Converts an agent to options of the Agent SDK. */
export function toSdkOptions(agent: Agent, { attended, mcpServers = {}, spent }: OptionsInput) {
  const mode = modeOf(agent);
  const { allowed_tools = [], denied_tools = [] } = agent.permissions ?? {};
  const trusted = agent.trust_project_settings;
  return {
    systemPrompt: systemPromptOf(agent.system_prompt),
    // always set, because the SDK would otherwise choose a mode
    permissionMode: mode,
    ...(mode === "bypassPermissions" ? { allowDangerouslySkipPermissions: true } : {}),
    allowedTools: [...allowed_tools],
    // leaving plan mode would break its promise; without a person there is nobody to ask
    disallowedTools: [...denied_tools, ...(mode === "plan" && attended ? ["ExitPlanMode"] : [])],
    settingSources: trusted ? ["project", "local"] : [],
    strictMcpConfig: !trusted,
    mcpServers,
    ...(agent.model === undefined ? {} : { model: agent.model }),
    ...(agent.max_turns === undefined ? {} : { maxTurns: Math.max(1, agent.max_turns - (spent?.turns ?? 0)) }),
    ...(agent.budget?.cost_usd === undefined
      ? {}
      : { maxBudgetUsd: Math.max(minUsd, agent.budget.cost_usd - (spent?.cost_usd ?? 0)) }),
    // prompts are built from parameters, so `@file` and `/command` in them must not be expanded
    verbatimPrompts: true,
    includePartialMessages: true,
  };
}

/** The SDK rejects a budget of 0. */
const minUsd = 0.000_001;

function systemPromptOf(given: Agent["system_prompt"]) {
  if (typeof given === "string" && given.trim() !== "") return given;
  const append = typeof given === "object" ? given.append : undefined;
  return { type: "preset", preset: "claude_code", ...(append === undefined ? {} : { append }) } as const;
}

/** Does this mode allow the effect without asking? */
export function allows(mode: Mode, effect: Effect): boolean {
  return allowedEffects[mode].includes(effect);
}
