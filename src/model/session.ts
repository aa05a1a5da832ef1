import * as z from "zod";
import { runModes } from "./demands.ts";
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
  /** The state directory it lies in, where any runner with its profile continues it; null where its runner named none. */
  place_id: z.string().nullable(),
  /** The runner that had it last, and without a place_id the only one that continues it; null until one has claimed it. */
  runner_id: z.string().nullable(),
  /** The directory of that runner. */
  runner_dir: z.string().nullable(),
  /** The record has all that continuing it takes: any runner with its profile can. */
  portable: z.boolean(),
  project_dir: z.string().nullable(),
  run_count: z.number().int(),
  created_at: z.string(),
  last_used_at: z.string(),
  /** The session this one was forked from, and how many turns of it were kept; null: all of them. */
  forked_from: z.string().nullable(),
  fork_at_turn: z.number().int().nullable(),
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
  /** What was forked from it, oldest first, at most so many. */
  forks(session_id: string, limit: number): Promise<Session[]>;
  /** Its runs, newest first, at most 1,000. */
  versions(session_id: string): Promise<SessionVersion[]>;
  /** Which of these there is no session of. */
  gone_sessions(session_ids: readonly string[]): Promise<string[]>;
}
