import { RequestError } from "../model/errors.ts";
import type { Session } from "../model/session.ts";
import type { ApiClient } from "../wire/client.ts";
import { findSession } from "./find-id.ts";

/** A session named on the command line, or in a `.session` file, which is not trusted. */
export interface NamedSession {
  id: string;
  file?: string;
}

export interface SessionUse {
  agent: string;
  profile: string;
  workspace: string;
}

/** Returns the session to resume, or null if the session in the file has no conversation yet because its run ended too early. */
export async function findResumableSession(
  client: ApiClient,
  named: NamedSession,
  use: SessionUse,
): Promise<Session | null> {
  const session = await findSession(client, named.id).catch((error: unknown) => {
    if (named.file !== undefined && error instanceof RequestError && error.code === "DROVER-USE-008")
      throw cannotResume(named, "the record has no such session");
    throw error;
  });
  const { agent_name, executor_profile, project_dir, executor_session_id } = session;
  if (agent_name !== use.agent) throw cannotResume(named, `it belongs to the agent ${agent_name}, not to ${use.agent}`);
  if (executor_profile !== null && executor_profile !== use.profile)
    throw cannotResume(named, `it was started with the profile ${executor_profile}, not with ${use.profile}`);
  if (project_dir !== use.workspace)
    throw cannotResume(named, `it works in ${project_dir ?? "its own directory"}, not in ${use.workspace}`);
  if (executor_session_id !== null) return session;
  if (named.file !== undefined) return null;
  throw cannotResume(named, "its run ended before the conversation started");
}

function cannotResume({ id, file }: NamedSession, reason: string): RequestError {
  return new RequestError({
    code: "DROVER-SUB-003",
    field: file === undefined ? "SESSION" : ".session",
    message: `Cannot resume session ${id}${file === undefined ? "" : ` from ${file}`}: ${reason}.`,
    next: `${file === undefined ? "Omit SESSION" : "Add --new"} to start a new session, or run \`drover sessions list\` to see the existing ones.`,
  });
}
