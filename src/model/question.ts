import * as z from "zod";
import { questionDecisions } from "./event.ts";
import type { Decision } from "./executor.ts";
import { effects } from "./tool.ts";

/** A question that a run asked, and its answer. */
export const questionSchema = z.object({
  run_id: z.string(),
  request_id: z.string(),
  attempt: z.number().int(),
  agent_name: z.string(),
  session_id: z.string().nullable(),
  /** The creator of the run. */
  created_by: z.string(),
  /** The ancestors of the run, nearest first. */
  parents: z.array(z.object({ run_id: z.string(), agent_name: z.string() })),
  tool: z.string(),
  input: z.unknown(),
  effect: z.enum(effects).nullable(),
  /** JSON Schema for edited input. null: any input is valid. */
  input_schema: z.record(z.string(), z.unknown()).nullable(),
  asked_at: z.string(),
  expires_at: z.string(),
  /** null while the question is open. */
  decision: z.enum(questionDecisions).nullable(),
  answered_by: z.string().nullable(),
  answered_at: z.string().nullable(),
  message: z.string().nullable(),
  /** The input that the person allowed instead of `input`. */
  edited_input: z.unknown(),
  remember: z.literal("session").nullable(),
});
export type Question = z.infer<typeof questionSchema>;

/** Answers a question; the first answer wins. A waiting run gets an order, and a parked run returns to pending. */
export interface AnswerQuestion {
  op: "answer_question";
  run_id: string;
  request_id: string;
  answer: Decision;
  by: string;
}

/** Resumes a parked run at once, unless it waits for an answer. */
export interface ResumeRun {
  op: "resume_run";
  run_id: string;
  by: string;
}

/** Sends user input to a running or waiting run. It is stored as a `system` event with subtype `user_input`. */
export interface SendInput {
  op: "send_input";
  run_id: string;
  text: string;
  by: string;
}

export type QuestionOp = AnswerQuestion | ResumeRun | SendInput;

export type QuestionResult =
  | { ok: true; op: "answer_question"; question: Question }
  | { ok: true; op: "resume_run" }
  | { ok: true; op: "send_input" }
  | { ok: false; conflict: "not_found" }
  /** The run's executor does not accept user input. */
  | { ok: false; conflict: "no_input"; executor: string }
  /** `answered`: somebody else answered first. `closed`: the question expired or was superseded. */
  | { ok: false; conflict: "answered" | "closed"; question: Question }
  /** The run is not parked (`resume_run`), or neither running nor waiting (`send_input`). */
  | { ok: false; conflict: "wrong_state"; status: string; waits_for: "answer" | null };

export interface QuestionReads {
  /** The newest question with that id. */
  question(run_id: string, request_id: string): Promise<Question | null>;
  /** Oldest first. `after` is the `next` of the previous page. */
  questions(
    filter: { open?: boolean; created_by?: string; run_id?: string },
    page: { after?: string; limit: number },
  ): Promise<{ items: Question[]; next: string | null; count: number }>;
  /** Usage by agent, day or session, newest day first. */
  usage(
    filter: {
      since?: string;
      until?: string;
      agent_name?: string;
      created_by?: string;
      by: "agent" | "day" | "session";
    },
    limit: number,
  ): Promise<UsageRow[]>;
}

export const usageRowSchema = z.object({
  agent_name: z.string().nullable(),
  day: z.string().nullable(),
  session_id: z.string().nullable(),
  runs: z.number().int(),
  turns: z.number().int(),
  input_tokens: z.number(),
  output_tokens: z.number(),
  /** null if no turn reported a cost. */
  cost_usd: z.number().nullable(),
});
export type UsageRow = z.infer<typeof usageRowSchema>;
