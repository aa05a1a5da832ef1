import type { Agent } from "../../../model/agent.ts";
import type { Effect } from "../../../model/tool.ts";
import { allowedEffects } from "../loop/permissions.ts";

export type Mode = keyof typeof allowedEffects;

export interface OptionsInput {
  /** Its questions reach a person. */
  attended: boolean;
  mcpServers?: Record<string, unknown>;
  /** Of this run, by earlier attempts. */
  spent?: { turns: number; cost_usd: number };
}

export function modeOf(agent: Agent): Mode {
  return agent.permissions?.mode ?? "acceptEdits";
}

/** What an agent says, in the names of the Agent SDK. */
export function toSdkOptions(agent: Agent, { attended, mcpServers = {}, spent }: OptionsInput) {
  const mode = modeOf(agent);
  const { allowed_tools = [], denied_tools = [] } = agent.permissions ?? {};
  const trusts = agent.trust_project_settings;
  return {
    systemPrompt: systemPromptOf(agent.system_prompt),
    // always given: without it the SDK chooses one by itself
    permissionMode: mode,
    ...(mode === "bypassPermissions" ? { allowDangerouslySkipPermissions: true } : {}),
    allowedTools: [...allowed_tools],
    // leaving plan mode would undo what the mode promises; without a person there is nobody to ask
    disallowedTools: [...denied_tools, ...(mode === "plan" && attended ? ["ExitPlanMode"] : [])],
    settingSources: trusts ? ["project", "local"] : [],
    strictMcpConfig: !trusts,
    mcpServers,
    ...(agent.model === undefined ? {} : { model: agent.model }),
    ...(agent.max_turns === undefined ? {} : { maxTurns: Math.max(1, agent.max_turns - (spent?.turns ?? 0)) }),
    ...(agent.budget?.cost_usd === undefined
      ? {}
      : { maxBudgetUsd: Math.max(leastUsd, agent.budget.cost_usd - (spent?.cost_usd ?? 0)) }),
    // prompts are put together from parameters: no `@file` and no `/command` in them
    verbatimPrompts: true,
    includePartialMessages: true,
  };
}

/** The SDK takes no budget of 0. */
const leastUsd = 0.000_001;

function systemPromptOf(given: Agent["system_prompt"]) {
  if (typeof given === "string" && given.trim() !== "") return given;
  const append = typeof given === "object" ? given.append : undefined;
  return { type: "preset", preset: "claude_code", ...(append === undefined ? {} : { append }) } as const;
}

/** Whether a mode allows this by itself. */
export function allows(mode: Mode, effect: Effect): boolean {
  return allowedEffects[mode].includes(effect);
}
