import { RequestError } from "../model/errors.ts";
import type { Run } from "../model/run.ts";
import { isProcedural } from "../model/session.ts";
import type { ApiClient, FlatAgent } from "../wire/client.ts";
import { withRetries } from "./with-retries.ts";

/** Finds the type of the agent when the run was submitted. Returns null for a command of `drover exec` and for a deleted session. */
export async function findAgentType(
  { sessions }: Pick<ApiClient, "sessions">,
  { session_id }: Pick<Run, "session_id">,
): Promise<FlatAgent["type"] | null> {
  if (session_id === null) return null;
  try {
    return isProcedural(await withRetries(() => sessions.get(session_id))) ? "procedural" : "autonomous";
  } catch (error) {
    if (error instanceof RequestError) return null;
    throw error;
  }
}
