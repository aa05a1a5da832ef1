import { RequestError } from "../model/errors.ts";
import type { Session } from "../model/session.ts";
import type { ApiClient } from "../wire/client.ts";
import { findSession } from "./find-id.ts";

/** A session named on the command line, or in a `.session` file, which is not trusted. */
export interface SessionReference {
  id: string;
  file?: string;
}

/** What the session must match. */
export interface SessionRequirements {
  agent: string;
  profile: string;
  workspace: string;
}

/** Finds the session to resume. Returns null if the `.session` file names it and it has no conversation, because its run ended too early. */
export async function findResumableSession(
  client: ApiClient,
  reference: SessionReference,
  required: SessionRequirements,
): Promise<Session | null> {
  const session = await findSession(client, reference.id).catch((error: unknown) => {
    if (reference.file !== undefined && error instanceof RequestError && error.code === "DROVER-USE-008")
      throw cannotResume(reference, "the record has no such session");
    throw error;
  });
  const { agent_name, executor_profile, project_dir, executor_session_id } = session;
  if (agent_name !== required.agent)
    throw cannotResume(reference, `it belongs to the agent ${agent_name}, not to ${required.agent}`);
  if (executor_profile !== null && executor_profile !== required.profile)
    throw cannotResume(reference, `it was started with the profile ${executor_profile}, not with ${required.profile}`);
  if (project_dir !== required.workspace)
    throw cannotResume(reference, `it works in ${project_dir ?? "its own directory"}, not in ${required.workspace}`);
  if (executor_session_id !== null) return session;
  if (reference.file !== undefined) return null;
  throw cannotResume(reference, "its run ended before the conversation started");
}

function cannotResume({ id, file }: SessionReference, reason: string): RequestError {
  return new RequestError({
    code: "DROVER-SUB-003",
    field: file === undefined ? "SESSION" : ".session",
    message: `Cannot resume session ${id}${file === undefined ? "" : ` from ${file}`}: ${reason}.`,
    next: `${file === undefined ? "Omit SESSION" : "Add --new"} to start a new session, or run \`drover sessions list\` to see the existing ones.`,
  });
}
