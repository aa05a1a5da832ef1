import type { Question } from "../../model/question.ts";
import type { Run } from "../../model/run.ts";
import { isTerminal } from "../../model/states.ts";
import type { RunSnapshot } from "./wait-for-run.ts";

/** Characters of a result that are handed to a model; the record has all of it. */
const longest = 256 * 1024;

/** What a model needs to know of a run. */
export function viewOf({ run, questions }: RunSnapshot): Record<string, unknown> {
  const { run_id, agent_name, status, session_id, reason, error, progress, parked_why, parked_until } = run;
  const next = nextOf(run, questions);
  return withoutNulls({
    run_id,
    agent: agent_name,
    status,
    session_id,
    reason,
    message: error,
    progress,
    exit_code: run.exit_code,
    parked_why,
    parked_until,
    ...resultOf(run),
    questions: questions.length === 0 ? null : questions.map(questionOf),
    created_at: run.created_at,
    finished_at: run.finished_at,
    next,
  });
}

/** The result, cut to what a model can be handed. */
export function resultOf({ run_id, result_text, result_data }: Run): {
  result_text: string | null;
  result_data: unknown;
} {
  const isLarge = JSON.stringify(result_data ?? null).length > longest;
  const cut = result_text !== null && result_text.length > longest;
  return {
    result_text: cut
      ? `${result_text.slice(0, longest)}\n... cut here, after ${longest} of ${result_text.length} characters: drover runs show ${run_id} --json prints all of it.`
      : result_text,
    result_data: isLarge ? null : (result_data ?? null),
  };
}

function questionOf({ request_id, tool, input, effect, expires_at }: Question) {
  return { request_id, tool, input, effect, expires_at };
}

function nextOf({ run_id, status, parked_why, parked_until }: Run, questions: readonly Question[]): string | null {
  if (isTerminal(status)) return null;
  if (questions.length > 0)
    return `Answer with answer_question, or leave it to a person (drover questions). Then call wait_run with ${run_id}.`;
  if (status === "parked")
    return parked_until === null
      ? `The run is parked (${parked_why}) until a person continues it: drover runs resume ${run_id}`
      : `The run is parked (${parked_why}) and continues at ${parked_until}. Call get_run after that.`;
  return `The run is not finished. Call wait_run with ${run_id} for its result, or stop_run to end it.`;
}

function withoutNulls(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null && one !== undefined));
}
