import type { ListedAgent } from "../model/dispatch-ops.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { SessionReads } from "../model/session.ts";
import { suggest } from "../model/suggest.ts";
import { faultOf, type SubmitFault } from "./submit-fault.ts";

export interface Agents {
  list(): Promise<ListedAgent[]>;
  find(name: string): Promise<ListedAgent | { candidates: ListedAgent[] } | null>;
}

/** The one agent that is meant. Of several runners' agents with one name, that of the runner it has to be is. */
export async function findAgent(
  { agent_name, demands, session_id }: RunRequest,
  agents: Agents,
  sessions: Pick<SessionReads, "session">,
): Promise<ListedAgent | SubmitFault> {
  const found = await agents.find(agent_name);
  if (found === null) return unknown(agent_name, await agents.list());
  if (!("candidates" in found)) return found;
  const session = session_id === undefined ? null : await sessions.session(session_id);
  const where = demands?.runner_id ?? session?.runner_id;
  const demanded = found.candidates.find(({ runner_id }) => runner_id === where);
  if (demanded !== undefined) return demanded;
  const names = found.candidates.map(({ agent, runner_id }) => `${agent.name}@${runner_id}`);
  return faultOf(
    409,
    "DROVER-API-021",
    `More than one runner brings the agent ${agent_name}.`,
    names.map((name) => ({ path: "body.agent_name", message: name })),
    `Name one of them: ${names.join(", ")}.`,
  );
}

function unknown(name: string, all: readonly ListedAgent[]): SubmitFault {
  const near = suggest(name, new Set(all.map(({ agent }) => agent.name)));
  const message = `There is no agent ${name}.${near === undefined ? "" : ` Did you mean ${near}?`}`;
  const next =
    all.length === 0
      ? "Start a runner that brings agents, or put one into the agents folder."
      : "See which there are: drover agents list";
  return faultOf(
    404,
    "DROVER-SUB-001",
    message,
    [{ path: "body.agent_name", message: near === undefined ? "unknown" : `unknown; did you mean ${near}?` }],
    next,
  );
}
