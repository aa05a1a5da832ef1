import { z } from "zod";

/** A conversation that runs continue. A procedural run has one of its own, bound to itself. */
export const sessionSchema = z.object({
  session_id: z.string(),
  /** The executor's own name for it; null until the executor told it. */
  executor_session_id: z.string().nullable(),
  agent_name: z.string(),
  created_by: z.string(),
  hostname: z.string().nullable(),
  executor_profile: z.string().nullable(),
  project_dir: z.string().nullable(),
  run_count: z.number().int(),
  created_at: z.string(),
  last_used_at: z.string(),
});
export type Session = z.infer<typeof sessionSchema>;

/** Binding the same id again changes nothing; another one where one is bound is `bound_otherwise`. */
export interface BindSession {
  op: "bind_session";
  session_id: string;
  executor_session_id: string;
}

export type SessionResult = { ok: true; op: "bind_session" } | { ok: false; conflict: "not_found" | "bound_otherwise" };

export interface SessionReads {
  session(session_id: string): Promise<Session | null>;
  /** Newest first; `before` is the last session_id of the page before. */
  sessions(
    filter: { agent_name?: string; created_by?: string },
    page: { before?: string; limit: number },
  ): Promise<Session[]>;
}
