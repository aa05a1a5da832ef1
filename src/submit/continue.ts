import type { Agent } from "../model/agent.ts";
import type { NewId } from "../model/ids.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { Session } from "../model/session.ts";
import type { Store } from "../model/store.ts";
import { faultOf, type SubmitFault } from "./submit-fault.ts";

/** The session a run is of, and what it takes over from the one it continues. */
export interface Continued {
  session_id: string;
  forked_from: string | null;
  project_dir: string | null;
  /** Where the conversation lies; null for a new one. */
  place: Place | null;
}

export interface Place extends Pick<Session, "hostname" | "executor_profile" | "runner_id"> {
  /** That of its runner, where that one is known. */
  directory: string | null;
}

interface Deps {
  store: Pick<Store, "read">;
  newId: NewId;
}

export async function continued(
  request: RunRequest,
  agent: Agent,
  who: { subject: string; role: string },
  deps: Deps,
): Promise<Continued | SubmitFault> {
  const { mode, session_id } = request;
  if (mode === "start") {
    if (session_id === undefined)
      return { session_id: deps.newId(), forked_from: null, project_dir: null, place: null };
    return bad(400, "A start begins a session of its own.", "leave it out, or set mode to resume or fork");
  }
  if (agent.type === "procedural") {
    return faultOf(400, "DROVER-SUB-002", "Procedural agents do not support resumption", [
      { path: "body.mode", message: `${mode} of a procedural agent` },
    ]);
  }
  if (session_id === undefined) return bad(400, `A ${mode} needs the session it continues.`, "missing");
  const session = await deps.store.read.session(session_id);
  const theirs = session !== null && (who.role === "admin" || session.created_by === who.subject);
  if (!theirs) return bad(404, "There is no such session.", "unknown");
  if (session.agent_name !== agent.name)
    return bad(409, `The session is of the agent ${session.agent_name}.`, "of another agent");
  const { hostname, executor_profile, runner_id, project_dir } = session;
  if (mode === "fork" && hostname === null)
    return bad(409, "The session has not begun: there is nothing to fork from.", "no run of it was claimed yet");
  const own =
    mode === "fork" ? { session_id: deps.newId(), forked_from: session_id } : { session_id, forked_from: null };
  if (request.project_dir !== undefined && request.project_dir !== project_dir) {
    return faultOf(409, "DROVER-SUB-003", `The session works in ${project_dir ?? "a folder of its own"}.`, [
      { path: "body.project_dir", message: "not the session's" },
    ]);
  }
  const runner = runner_id === null ? null : await deps.store.read.runner(runner_id);
  const place = { hostname, executor_profile, runner_id, directory: runner?.project_dir ?? null };
  return { ...own, project_dir, place };
}

function bad(status: number, message: string, fault: string): SubmitFault {
  return faultOf(status, "DROVER-SUB-003", message, [{ path: "body.session_id", message: fault }]);
}
