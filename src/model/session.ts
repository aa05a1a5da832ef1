import { z } from "zod";
import { runModes } from "./run.ts";
import { runStatuses } from "./states.ts";

/** A conversation that runs continue. A procedural run has one of its own, bound to itself. */
export const sessionSchema = z.object({
  session_id: z.string(),
  /** The executor's own name for it; null until the executor told it. */
  executor_session_id: z.string().nullable(),
  agent_name: z.string(),
  created_by: z.string(),
  hostname: z.string().nullable(),
  executor_profile: z.string().nullable(),
  /** The runner it lies with, where it is continued; null until one has claimed it. */
  runner_id: z.string().nullable(),
  project_dir: z.string().nullable(),
  run_count: z.number().int(),
  created_at: z.string(),
  last_used_at: z.string(),
  /** The session this one was forked from. */
  forked_from: z.string().nullable(),
});
export type Session = z.infer<typeof sessionSchema>;

/** One run of a session, and the run it went on from: the one before it, or the last of the session it was forked from. */
export const sessionVersionSchema = z.object({
  run_id: z.string(),
  mode: z.enum(runModes),
  status: z.enum(runStatuses),
  parent: z.string().nullable(),
  executor_session_id: z.string().nullable(),
});
export type SessionVersion = z.infer<typeof sessionVersionSchema>;

/** Binding the same id again changes nothing; another one where one is bound is `bound_otherwise`. */
export interface BindSession {
  op: "bind_session";
  session_id: string;
  executor_session_id: string;
}

/** A session and its right to be continued end; refused while a run of it is active. Its runs stay. */
export interface DeleteSession {
  op: "delete_session";
  session_id: string;
}

export type SessionResult =
  | { ok: true; op: "bind_session" | "delete_session" }
  | { ok: false; conflict: "not_found" | "bound_otherwise" | "busy" };

export interface SessionReads {
  session(session_id: string): Promise<Session | null>;
  /** Newest first; `before` is the last session_id of the page before. */
  sessions(
    filter: { agent_name?: string; created_by?: string },
    page: { before?: string; limit: number },
  ): Promise<Session[]>;
  /** Its runs, newest first, at most 1,000. */
  versions(session_id: string): Promise<SessionVersion[]>;
  /** Which of these there is no session of. */
  gone_sessions(session_ids: readonly string[]): Promise<string[]>;
}
