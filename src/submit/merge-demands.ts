import { newDemandsSchema } from "../model/demands.ts";
import type { Agent } from "../model/agent.ts";
import type { RunnerFacts } from "../record/matching.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { Demands } from "../model/run.ts";
import type { ResolvedSession, SessionLocation } from "./resolve-session.ts";
import type { FoundAgent } from "./find-agent.ts";
import { buildSubmitFault, type SubmitFault } from "./submit-fault.ts";

const locationKeys = ["hostname", "place_id", "project_dir", "executor_profile", "executor_type", "runner_id"] as const;

/**
 * Combines the demands of the agent, the request and the session. All must hold, so two different values are a conflict.
 * An agent that a runner offers is pinned to that runner; any other agent needs a runner with its executor. A session needs
 * the state directory that has its conversation, its work directory and its HOME.
 */
export function mergeDemands(
  { agent, runner_id, runner }: FoundAgent,
  request: RunRequest,
  { location }: ResolvedSession,
): Demands | SubmitFault {
  const requested = request.demands ?? {};
  const agentDemands: Demands = { ...agent.demands, ...(runner_id === null ? {} : { runner_id }) };
  const sessionDemands = location?.demands ?? {};
  const mismatches = locationKeys.filter((name) => differs(sessionDemands[name], requested[name]));
  if (mismatches.length > 0) {
    const faults = mismatches.map((name) => ({
      path: `body.demands.${name}`,
      message: `the session is at ${sessionDemands[name]}`,
    }));
    return buildSubmitFault(
      409,
      "DROVER-SUB-005",
      "The session cannot be continued with these demands, because it is stored elsewhere.",
      faults,
      "Remove these demands from the request.",
    );
  }
  const agentLocation = { ...agentDemands, ...(runner && toLocation(runner)) };
  const conflicts = locationKeys.filter((name) => differs(sessionDemands[name], agentLocation[name]));
  if (location !== null && conflicts.length > 0)
    return describeLocationConflict(agent.name, location, conflicts, agentLocation);
  const clashes = locationKeys.filter((name) => differs(agentDemands[name], requested[name]));
  if (clashes.length > 0) {
    const faults = clashes.map((name) => ({
      path: `body.demands.${name}`,
      message: `the agent demands ${agentDemands[name]}`,
    }));
    return buildSubmitFault(
      409,
      "DROVER-SUB-005",
      `The demands of the request conflict with the demands of the agent ${agent.name}.`,
      faults,
      "Remove these demands from the request.",
    );
  }
  const merged: Demands = { ...deriveDemands(agent, runner_id), ...sessionDemands, ...agentDemands, ...requested };
  const tags = [...new Set([...(agent.demands?.tags ?? []), ...(requested.tags ?? [])])].sort();
  const { tags: _, ...rest } = merged;
  const all: Demands = tags.length === 0 ? rest : { ...rest, tags };
  return newDemandsSchema.safeParse(all).success ? all : describeTooLong(agent.name);
}

/** The request and the agent may each be within the limits, but not together. Agents from files and fleets are checked only here. */
function describeTooLong(agent_name: string): SubmitFault {
  return buildSubmitFault(
    400,
    "DROVER-SUB-005",
    `The combined demands of the request and the agent ${agent_name} are too long.`,
    [{ path: "body.demands", message: "at most 64 tags, 255 characters each, and 4,096 for project_dir" }],
    "Use fewer or shorter demands.",
  );
}

function toLocation({ hostname, executor_profile, place_id }: RunnerFacts): Demands {
  return { hostname, executor_profile, place_id: place_id ?? "none" };
}

/** The agent and the session are in different locations, so no change to the request can help. */
function describeLocationConflict(
  agent_name: string,
  { demands: sessionDemands, runner_id, directory }: SessionLocation,
  conflicts: readonly (typeof locationKeys)[number][],
  agentLocation: Demands,
): SubmitFault {
  const faults = conflicts.map((name) => ({
    path: "body.session_id",
    message: `the session is at ${name} ${sessionDemands[name]}, the agent at ${agentLocation[name]}`,
  }));
  if (!conflicts.includes("runner_id") && !conflicts.includes("place_id")) {
    const next = "Change the agent's demands, or start a new session.";
    return buildSubmitFault(
      409,
      "DROVER-SUB-005",
      `The session is not where the agent ${agent_name} must run.`,
      faults,
      next,
    );
  }
  const inDirectory = directory === null ? "" : ` in ${directory}`;
  return buildSubmitFault(
    409,
    "DROVER-SUB-005",
    `The session is stored with the runner ${runner_id}${inDirectory}, where the agent ${agent_name} is not available now.`,
    faults,
    `Start that runner again${inDirectory || " in the directory it was in"}, with the agent, or start a new session.`,
  );
}

function differs(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && b !== undefined && a !== b;
}

function deriveDemands(agent: Agent, runner_id: string | null): Demands {
  if (runner_id !== null) return {};
  const type = agent.executor ?? (agent.type === "procedural" ? "procedural" : undefined);
  return type === undefined ? {} : { executor_type: type };
}
