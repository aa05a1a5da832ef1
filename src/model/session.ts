import * as z from "zod";
import { runModes } from "./demands.ts";
import { runStatuses } from "./states.ts";

/** A conversation that runs can continue. A procedural run has a session that belongs to this run only. */
export const sessionSchema = z.object({
  session_id: z.string(),
  /** The executor's id of the session. null until the executor reports it. */
  executor_session_id: z.string().nullable(),
  agent_name: z.string(),
  created_by: z.string(),
  hostname: z.string().nullable(),
  executor_profile: z.string().nullable(),
  /** The id of the state directory that holds the session. Runners there can continue it. null if the runner reports no such id. */
  place_id: z.string().nullable(),
  /** The runner that last ran the session. If place_id is null, only this runner can continue it. null until a run is claimed. */
  runner_id: z.string().nullable(),
  /** The directory of that runner. */
  runner_dir: z.string().nullable(),
  /** The record holds everything needed, so any runner with the session's profile can continue it. */
  portable: z.boolean(),
  project_dir: z.string().nullable(),
  run_count: z.number().int(),
  created_at: z.string(),
  last_used_at: z.string(),
  /** The session this one was forked from, and how many of its turns were kept (null: all). */
  forked_from: z.string().nullable(),
  fork_at_turn: z.number().int().nullable(),
});
export type Session = z.infer<typeof sessionSchema>;

/** Whether the session belongs to a procedural agent. The record gives such a session its own id instead of the executor's. */
export function isProcedural({ session_id, executor_session_id }: Session): boolean {
  return executor_session_id === session_id;
}

/** One run of a session. `parent` is the previous run, or the last run of the session it was forked from. */
export const sessionVersionSchema = z.object({
  run_id: z.string(),
  mode: z.enum(runModes),
  status: z.enum(runStatuses),
  parent: z.string().nullable(),
  executor_session_id: z.string().nullable(),
});
export type SessionVersion = z.infer<typeof sessionVersionSchema>;

/** One session of a tree of forks. */
export const sessionNodeSchema = sessionSchema
  .pick({
    session_id: true,
    agent_name: true,
    created_by: true,
    forked_from: true,
    fork_at_turn: true,
    run_count: true,
    created_at: true,
    last_used_at: true,
  })
  .extend({ runs: z.array(sessionVersionSchema.pick({ run_id: true, mode: true, status: true })) });
export type SessionNode = z.infer<typeof sessionNodeSchema>;

/** Sets the executor's session id. The same id again is a no-op, and a different one is `bound_otherwise`. */
export interface BindSession {
  op: "bind_session";
  session_id: string;
  executor_session_id: string;
}

/** Deletes a session, so that it can no longer be continued. Rejected while one of its runs is active. Its runs stay. */
export interface DeleteSession {
  op: "delete_session";
  session_id: string;
}

export type SessionResult =
  | { ok: true; op: "bind_session" | "delete_session" }
  | { ok: false; conflict: "not_found" | "bound_otherwise" | "busy" };

export interface SessionFilter {
  agent_name?: string;
  created_by?: string;
  /** The end of the session_id. Only the newest 100,000 sessions are searched. */
  id_suffix?: string;
}

export interface SessionReads {
  session(session_id: string): Promise<Session | null>;
  /** Newest first. `before` is the last session_id of the previous page. */
  sessions(filter: SessionFilter, page: { before?: string; limit: number }): Promise<Session[]>;
  /** Sessions forked from this one, oldest first. */
  forks(session_id: string, limit: number): Promise<Session[]>;
  /** The session's runs, newest first, at most 1,000. */
  versions(session_id: string): Promise<SessionVersion[]>;
  /** The ids among these that belong to no session. */
  deleted_sessions(session_ids: readonly string[]): Promise<string[]>;
}
