import { RequestError } from "../model/errors.ts";
import type { Session } from "../model/session.ts";
import type { ApiClient } from "../wire/client.ts";
import { findSession } from "./find-id.ts";

/** A session as somebody named it: on the command line, or in a file that anybody may have written. */
export interface NamedSession {
  id: string;
  file?: string;
}

export interface SessionUse {
  agent: string;
  profile: string;
  workspace: string;
}

/** The session to resume. null where a file names one that has nothing to resume: its run ended before it began. */
export async function findSpecSession(
  client: ApiClient,
  named: NamedSession,
  use: SessionUse,
): Promise<Session | null> {
  const session = await findSession(client, named.id).catch((error: unknown) => {
    if (named.file !== undefined && error instanceof RequestError && error.code === "DROVER-USE-008")
      throw refused(named, "there is no such session on this record");
    throw error;
  });
  const { agent_name, executor_profile, project_dir, executor_session_id } = session;
  if (agent_name !== use.agent) throw refused(named, `it is of the agent ${agent_name}, not of ${use.agent}`);
  if (executor_profile !== null && executor_profile !== use.profile)
    throw refused(named, `it was begun with the profile ${executor_profile}, not with ${use.profile}`);
  if (project_dir !== use.workspace)
    throw refused(named, `it works in ${project_dir ?? "a folder of its own"}, not in ${use.workspace}`);
  if (executor_session_id !== null) return session;
  if (named.file !== undefined) return null;
  throw refused(named, "its run ended before there was a conversation");
}

function refused({ id, file }: NamedSession, why: string): RequestError {
  return new RequestError({
    code: "DROVER-SUB-003",
    field: file === undefined ? "SESSION" : ".session",
    message: `The session ${id}${file === undefined ? "" : `, which ${file} names,`} cannot be resumed here: ${why}.`,
    next: `${file === undefined ? "Leave SESSION out" : "Add --new"} to begin another one; \`drover sessions list\` shows those of this record.`,
  });
}
