import type { Agent } from "../model/agent.ts";
import type { RunnerFacts } from "../record/matching.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { Demands } from "../model/run.ts";
import type { ResolvedSession, SessionLocation } from "./resolve-session.ts";
import type { FoundAgent } from "./find-agent.ts";
import { submitFault, type SubmitFault } from "./submit-fault.ts";

const places = ["hostname", "place_id", "project_dir", "executor_profile", "executor_type", "runner_id"] as const;

/**
 * What the agent demands and what the request demands must both hold, so two different values can never
 * be met. A runner's own agent is pinned to it; any other goes to runners with an executor of its kind;
 * a session goes to the state directory its conversation lies in: its work folder and its HOME are there.
 */
export function mergeDemands(
  { agent, runner_id, runner }: FoundAgent,
  request: RunRequest,
  { place }: ResolvedSession,
): Demands | SubmitFault {
  const asked = request.demands ?? {};
  const given: Demands = { ...agent.demands, ...(runner_id === null ? {} : { runner_id }) };
  const there = place?.demands ?? {};
  const elsewhere = places.filter((name) => differs(there[name], asked[name]));
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
  const at = { ...given, ...(runner && pickPlace(runner)) };
  const bound = places.filter((name) => differs(there[name], at[name]));
  if (place !== null && bound.length > 0) return agentIsElsewhere(agent.name, place, bound, at);
  const clashes = places.filter((name) => differs(given[name], asked[name]));
  if (clashes.length > 0) {
    const faults = clashes.map((name) => ({
      path: `body.demands.${name}`,
      message: `the agent demands ${given[name]}`,
    }));
    return submitFault(
      409,
      "DROVER-SUB-005",
      `The agent ${agent.name} demands something else.`,
      faults,
      "Leave these demands out.",
    );
  }
  const merged: Demands = { ...implied(agent, runner_id), ...there, ...given, ...asked };
  const tags = [...new Set([...(agent.demands?.tags ?? []), ...(asked.tags ?? [])])].sort();
  const { tags: _, ...rest } = merged;
  return tags.length === 0 ? rest : { ...rest, tags };
}

function pickPlace({ hostname, executor_profile, place_id }: RunnerFacts): Demands {
  return { hostname, executor_profile, place_id: place_id ?? "none" };
}

/** Nothing in the request can be changed to help. */
function agentIsElsewhere(
  agent_name: string,
  { demands: there, runner_id, directory }: SessionLocation,
  bound: readonly (typeof places)[number][],
  given: Demands,
): SubmitFault {
  const faults = bound.map((name) => ({
    path: "body.session_id",
    message: `the session is at ${name} ${there[name]}, the agent at ${given[name]}`,
  }));
  if (!bound.includes("runner_id") && !bound.includes("place_id")) {
    const next = "Change what the agent demands, or begin a new session.";
    return submitFault(
      409,
      "DROVER-SUB-005",
      `The session is not where the agent ${agent_name} has to be.`,
      faults,
      next,
    );
  }
  const where = directory === null ? "" : ` in ${directory}`;
  return submitFault(
    409,
    "DROVER-SUB-005",
    `The session lies with the runner ${runner_id}${where}, and the agent ${agent_name} is not there now.`,
    faults,
    `Start that runner again${where || " in the directory it was in"}, with the agent, or begin a new session.`,
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
