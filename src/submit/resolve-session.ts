import { type Agent, getSessionTimeoutSeconds } from "../model/agent.ts";
import type { NewId } from "../model/ids.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { Demands } from "../model/run.ts";
import type { Session } from "../model/session.ts";
import type { Store } from "../model/store.ts";
import { buildSubmitFault, type SubmitFault } from "./submit-fault.ts";

/** The session of a new run, with the values that the run inherits from the session it continues. */
export interface ResolvedSession {
  session_id: string;
  forked_from: string | null;
  project_dir: string | null;
  /** Where the conversation is stored; null for a new session. */
  location: SessionLocation | null;
}

export interface SessionLocation {
  /** What a runner must match to continue the session. */
  demands: Demands;
  /** The runner that last ran the session, and its directory if known. */
  runner_id: string | null;
  directory: string | null;
}

interface Deps {
  store: Pick<Store, "read">;
  newId: NewId;
  now: () => Date;
}

export async function resolveSession(
  request: RunRequest,
  agent: Agent,
  submitter: { subject: string; role: string },
  deps: Deps,
): Promise<ResolvedSession | SubmitFault> {
  const { mode, session_id } = request;
  if (request.fork_at_turn !== undefined && mode !== "fork")
    return buildSubmitFault(
      400,
      "DROVER-SUB-003",
      "Only a fork can start at an earlier turn.",
      [{ path: "body.fork_at_turn", message: `not allowed with mode ${mode}` }],
      "Omit fork_at_turn, or set mode to fork.",
    );
  if (mode === "start") {
    if (session_id === undefined)
      return { session_id: deps.newId(), forked_from: null, project_dir: null, location: null };
    return buildSessionFault(
      400,
      "A run with mode start gets a new session.",
      "omit it, or set mode to resume or fork",
    );
  }
  if (agent.type === "procedural") {
    return buildSubmitFault(400, "DROVER-SUB-002", "Procedural agents cannot resume or fork a session.", [
      { path: "body.mode", message: `${mode} is not possible with a procedural agent` },
    ]);
  }
  if (session_id === undefined) return buildSessionFault(400, `The mode ${mode} needs a session_id.`, "missing");
  const session = await deps.store.read.session(session_id);
  const mayContinue = session !== null && (submitter.role === "admin" || session.created_by === submitter.subject);
  if (!mayContinue)
    return buildSessionFault(404, "There is no such session, or it is not yours.", "unknown", startNewSession);
  if (session.agent_name !== agent.name)
    return buildSessionFault(
      409,
      `The session belongs to the agent ${session.agent_name}.`,
      "belongs to another agent",
      `Ask ${session.agent_name} to continue it, or start a new session of ${agent.name}.`,
    );
  const expiryFault = checkExpiry(agent, session, deps.now());
  if (expiryFault !== null) return expiryFault;
  const { hostname, runner_id, project_dir } = session;
  if (mode === "fork" && hostname === null)
    return buildSessionFault(
      409,
      "No run of the session has started, so there is nothing to fork from.",
      "no runner has claimed a run of it yet",
    );
  const ids =
    mode === "fork" ? { session_id: deps.newId(), forked_from: session_id } : { session_id, forked_from: null };
  if (request.project_dir !== undefined && request.project_dir !== project_dir) {
    return buildSubmitFault(409, "DROVER-SUB-003", `The session works in ${project_dir ?? "its own directory"}.`, [
      { path: "body.project_dir", message: "not the session's directory" },
    ]);
  }
  const runner = runner_id === null ? null : await deps.store.read.runner(runner_id);
  const executor = runner?.executor.type ?? (await findExecutor(session_id, deps.store));
  if (executor !== null && agent.executor !== undefined && executor !== agent.executor)
    return buildSessionFault(
      409,
      `The session belongs to the executor ${executor}; the agent ${agent.name} now uses ${agent.executor}.`,
      "belongs to another executor",
      startNewSession,
    );
  const location = { demands: getSessionDemands(session), runner_id, directory: runner?.project_dir ?? null };
  return { ...ids, project_dir, location };
}

/** Returns the executor demanded by the session's last run. The store forgets a runner that served a single command, but not its runs. */
async function findExecutor(session_id: string, { read }: Deps["store"]): Promise<string | null> {
  const [last] = await read.versions(session_id);
  const run = last === undefined ? null : await read.run_row(last.run_id);
  return run?.demands.executor_type ?? null;
}

/** Returns what a runner must match to continue the session: its state directory, or the same runner if it reported none. */
export function getSessionDemands({ hostname, executor_profile, place_id, runner_id, portable }: Session): Demands {
  // Any runner of this profile can continue a portable session. The store prefers the one that has the session's files.
  if (portable && executor_profile !== null) return { executor_profile };
  const demands =
    place_id === null ? { hostname, executor_profile, runner_id } : { hostname, executor_profile, place_id };
  return Object.fromEntries(Object.entries(demands).filter(([, value]) => value !== null));
}

const startNewSession = "Start a new session: set mode to start and omit session_id.";

function checkExpiry(agent: Agent, { session_id, last_used_at }: Session, now: Date): SubmitFault | null {
  const seconds = getSessionTimeoutSeconds(agent);
  if (seconds === null || now.getTime() - Date.parse(last_used_at) <= seconds * 1000) return null;
  return buildSubmitFault(
    409,
    "DROVER-SUB-006",
    `The session ${session_id} was last used at ${last_used_at}; sessions of ${agent.name} can be continued for ${seconds} s (session.timeout).`,
    [{ path: "body.session_id", message: "expired" }],
    startNewSession,
  );
}

function buildSessionFault(status: number, message: string, detail: string, next?: string): SubmitFault {
  return buildSubmitFault(status, "DROVER-SUB-003", message, [{ path: "body.session_id", message: detail }], next);
}
