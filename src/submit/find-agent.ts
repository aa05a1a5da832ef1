import { describeNameChoices, preferAvailable } from "../model/available-agents.ts";
import type { ListedAgent } from "../model/dispatch-ops.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { Demands } from "../model/run.ts";
import type { Store } from "../model/store.ts";
import { suggest } from "../model/suggest.ts";
import { type RunnerFacts, findUnmetDemands } from "../record/matching.ts";
import { getSessionDemands } from "./resolve-session.ts";
import { buildSubmitFault, type SubmitFault } from "./submit-fault.ts";

export interface AgentCatalog {
  names(): Promise<string[]>;
  find(name: string): Promise<ListedAgent | { candidates: ListedAgent[] } | null>;
}

/** An agent and the runner that offers it. `runner` is null for an agent from a file or the API. */
export interface FoundAgent extends ListedAgent {
  runner: RunnerFacts | null;
}

/** Finds the requested agent. If several runners offer an agent of that name, picks one whose runner meets the demands. */
export async function findAgent(
  request: RunRequest,
  agents: AgentCatalog,
  read: Pick<Store["read"], "session" | "runner">,
): Promise<FoundAgent | SubmitFault> {
  const { agent_name, demands, session_id } = request;
  const match = await agents.find(agent_name);
  if (match === null) return describeUnknownAgent(agent_name, await agents.names());
  const addRunner = async (listed: ListedAgent): Promise<FoundAgent> => {
    const row = listed.runner_id === null ? null : await read.runner(listed.runner_id);
    return { ...listed, runner: row && { ...row, executor_type: row.executor.type } };
  };
  if (!("candidates" in match)) return addRunner(match);
  const session = session_id === undefined ? null : await read.session(session_id);
  const combined: Demands = { ...(session && getSessionDemands(session)), ...demands };
  const candidates = await Promise.all(match.candidates.map(addRunner));
  const matching = candidates.filter(
    ({ runner }) => runner !== null && findUnmetDemands(combined, runner).length === 0,
  );
  // Runners of the same state directory can all continue the session.
  const available = preferAvailable(matching);
  const [first] = available;
  if (first !== undefined && (available.length === 1 || combined.place_id !== undefined)) return first;
  const names = preferAvailable(match.candidates).map(({ agent, runner_id }) => `${agent.name}@${runner_id}`);
  return buildSubmitFault(
    409,
    "DROVER-API-021",
    `More than one runner offers the agent ${agent_name}.`,
    names.map((name) => ({ path: "body.agent_name", message: name })),
    describeNameChoices(names),
  );
}

function describeUnknownAgent(name: string, knownNames: readonly string[]): SubmitFault {
  if (name === "exec")
    return buildSubmitFault(
      404,
      "DROVER-SUB-001",
      "exec is not an agent. It is the name under which `drover exec` records the commands that it runs on your own machine.",
      [{ path: "body.agent_name", message: "not an agent" }],
      'Run a command with: drover exec "COMMAND"',
    );
  const suggestion = suggest(name, new Set(knownNames));
  const message = `There is no agent ${name}.${suggestion === undefined ? "" : ` Did you mean ${suggestion}?`}`;
  const next =
    knownNames.length === 0
      ? "Start a runner that offers agents, or put an agent file into the agents directory."
      : "List the agents: drover agents list";
  return buildSubmitFault(
    404,
    "DROVER-SUB-001",
    message,
    [
      {
        path: "body.agent_name",
        message: suggestion === undefined ? "unknown" : `unknown; did you mean ${suggestion}?`,
      },
    ],
    next,
  );
}
