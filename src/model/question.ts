import * as z from "zod";
import { questionDecisions } from "./event.ts";
import type { Decision } from "./executor.ts";
import { effects } from "./tool.ts";

/** What a run asks a person, and what became of it. */
export const questionSchema = z.object({
  run_id: z.string(),
  request_id: z.string(),
  attempt: z.number().int(),
  agent_name: z.string(),
  session_id: z.string().nullable(),
  /** Of the run. */
  created_by: z.string(),
  /** The runs that led to this one, the nearest first. */
  parents: z.array(z.object({ run_id: z.string(), agent_name: z.string() })),
  tool: z.string(),
  input: z.unknown(),
  effect: z.enum(effects).nullable(),
  /** JSON Schema that edited input has to fit; null: any. */
  input_schema: z.record(z.string(), z.unknown()).nullable(),
  asked_at: z.string(),
  expires_at: z.string(),
  /** null: nobody has answered. */
  decision: z.enum(questionDecisions).nullable(),
  answered_by: z.string().nullable(),
  answered_at: z.string().nullable(),
  message: z.string().nullable(),
  /** What the person allowed in place of `input`. */
  edited_input: z.unknown(),
  remember: z.literal("session").nullable(),
});
export type Question = z.infer<typeof questionSchema>;

/** The first answer wins. Orders the runner of a waiting run, and puts a parked one back to pending. */
export interface AnswerQuestion {
  op: "answer_question";
  run_id: string;
  request_id: string;
  answer: Decision;
  by: string;
}

/** A parked run goes on now, whatever it waits for but an answer. */
export interface ResumeRun {
  op: "resume_run";
  run_id: string;
  by: string;
}

/** To a run that is at work, or waits for an answer. Stored as `system` with subtype `user_input`. */
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
  /** `answered`: somebody was first. `closed`: it has expired, or was superseded. `wrong_state`: the run is not parked, or not at work. */
  | { ok: false; conflict: "not_found" }
  /** The executor of the run does not read what people say to it. */
  | { ok: false; conflict: "no_input"; executor: string }
  | { ok: false; conflict: "answered" | "closed"; question: Question }
  | { ok: false; conflict: "wrong_state"; status: string; waits_for: "answer" | null };

export interface QuestionReads {
  /** The newest of that id. */
  question(run_id: string, request_id: string): Promise<Question | null>;
  /** Oldest first; `after` is the `place` of the page before. */
  questions(
    filter: { open?: boolean; created_by?: string; run_id?: string },
    page: { after?: string; limit: number },
  ): Promise<{ items: Question[]; next: string | null; count: number }>;
  /** What agents have used, newest day first. */
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
  /** null where no turn reported one. */
  cost_usd: z.number().nullable(),
});
export type UsageRow = z.infer<typeof usageRowSchema>;
