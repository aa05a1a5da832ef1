import type { Agent } from "../model/agent.ts";
import type { RunnerFacts } from "../record/matching.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { Demands } from "../model/run.ts";
import type { ResolvedSession, SessionLocation } from "./resolve-session.ts";
import type { FoundAgent } from "./find-agent.ts";
import { submitFault, type SubmitFault } from "./submit-fault.ts";

const locationKeys = ["hostname", "place_id", "project_dir", "executor_profile", "executor_type", "runner_id"] as const;

/**
 * Combines the demands of the agent, the request and the session. All must hold, so two different values are a conflict.
 * An agent brought by a runner is pinned to that runner; any other agent goes to runners with its executor. A session
 * goes to the state directory that holds its conversation, its work directory and its HOME.
 */
export function mergeDemands(
  { agent, runner_id, runner }: FoundAgent,
  request: RunRequest,
  { location }: ResolvedSession,
): Demands | SubmitFault {
  const asked = request.demands ?? {};
  const given: Demands = { ...agent.demands, ...(runner_id === null ? {} : { runner_id }) };
  const there = location?.demands ?? {};
  const elsewhere = locationKeys.filter((name) => differs(there[name], asked[name]));
  if (elsewhere.length > 0) {
    const faults = elsewhere.map((name) => ({
      path: `body.demands.${name}`,
      message: `the session is at ${there[name]}`,
    }));
    return submitFault(
      409,
      "DROVER-SUB-005",
      "The session cannot be continued elsewhere.",
      faults,
      "Leave these demands out.",
    );
  }
  const at = { ...given, ...(runner && locationOf(runner)) };
  const bound = locationKeys.filter((name) => differs(there[name], at[name]));
  if (location !== null && bound.length > 0) return agentIsElsewhere(agent.name, location, bound, at);
  const clashes = locationKeys.filter((name) => differs(given[name], asked[name]));
  if (clashes.length > 0) {
    const faults = clashes.map((name) => ({
      path: `body.demands.${name}`,
      message: `the agent demands ${given[name]}`,
    }));
    return submitFault(
      409,
      "DROVER-SUB-005",
      `The demands conflict with those of the agent ${agent.name}.`,
      faults,
      "Leave these demands out.",
    );
  }
  const merged: Demands = { ...implied(agent, runner_id), ...there, ...given, ...asked };
  const tags = [...new Set([...(agent.demands?.tags ?? []), ...(asked.tags ?? [])])].sort();
  const { tags: _, ...rest } = merged;
  return tags.length === 0 ? rest : { ...rest, tags };
}

function locationOf({ hostname, executor_profile, place_id }: RunnerFacts): Demands {
  return { hostname, executor_profile, place_id: place_id ?? "none" };
}

/** The agent and the session are in different locations, so no change to the request can help. */
function agentIsElsewhere(
  agent_name: string,
  { demands: there, runner_id, directory }: SessionLocation,
  bound: readonly (typeof locationKeys)[number][],
  given: Demands,
): SubmitFault {
  const faults = bound.map((name) => ({
    path: "body.session_id",
    message: `the session is at ${name} ${there[name]}, the agent at ${given[name]}`,
  }));
  if (!bound.includes("runner_id") && !bound.includes("place_id")) {
    const next = "Change the agent's demands, or start a new session.";
    return submitFault(
      409,
      "DROVER-SUB-005",
      `The session is not where the agent ${agent_name} must run.`,
      faults,
      next,
    );
  }
  const where = directory === null ? "" : ` in ${directory}`;
  return submitFault(
    409,
    "DROVER-SUB-005",
    `The session is stored with the runner ${runner_id}${where}, where the agent ${agent_name} is not available now.`,
    faults,
    `Start that runner again${where || " in the directory it was in"}, with the agent, or start a new session.`,
  );
}

function differs(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other;
}

function implied(agent: Agent, runner_id: string | null): Demands {
  if (runner_id !== null) return {};
  const type = agent.executor ?? (agent.type === "procedural" ? "procedural" : undefined);
  return type === undefined ? {} : { executor_type: type };
}
