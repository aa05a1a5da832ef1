import type { Question } from "../../model/question.ts";
import type { Run } from "../../model/run.ts";
import { hasEnded } from "../../model/states.ts";
import type { RunSnapshot } from "./wait-for-run.ts";

/** The longest result, in characters, that is passed to a model. The record keeps all of it. */
const maxResultLength = 256 * 1024;

/** The parts of a run that a model needs. */
export function toModelView({ run, questions }: RunSnapshot): Record<string, unknown> {
  const { run_id, agent_name, status, session_id, reason, error, progress, parked_why, parked_until } = run;
  const next = describeNextStep(run, questions);
  return omitNulls({
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
    ...truncateResult(run),
    questions: questions.length === 0 ? null : questions.map(toQuestionView),
    created_at: run.created_at,
    finished_at: run.finished_at,
    next,
  });
}

/** Truncates the result text. Omits result data that is too large, and says so in `result_data_omitted`. */
export function truncateResult({ run_id, result_text, result_data }: Run): {
  result_text: string | null;
  result_data: unknown;
  result_data_omitted: string | null;
} {
  const { length } = JSON.stringify(result_data ?? null);
  const isTooLarge = length > maxResultLength;
  const isTruncated = result_text !== null && result_text.length > maxResultLength;
  return {
    result_text: isTruncated
      ? `${result_text.slice(0, maxResultLength)}\n... truncated after ${maxResultLength} of ${result_text.length} characters. drover runs show ${run_id} --json prints all of it.`
      : result_text,
    result_data: isTooLarge ? null : (result_data ?? null),
    result_data_omitted: isTooLarge
      ? `The result data has ${length} characters and is too large to be shown. drover runs show ${run_id} --json prints it.`
      : null,
  };
}

function toQuestionView({ request_id, tool, input, effect, expires_at }: Question) {
  return { request_id, tool, input, effect, expires_at };
}

function describeNextStep(
  { run_id, status, parked_why, parked_until }: Run,
  questions: readonly Question[],
): string | null {
  if (hasEnded(status)) return null;
  if (questions.length > 0)
    return `Answer with answer_question, or let a user answer (drover questions). Then call wait_run with ${run_id}.`;
  if (status === "parked")
    return parked_until === null
      ? `The run is parked (${parked_why}) until someone resumes it: drover runs resume ${run_id}`
      : `The run is parked (${parked_why}) and continues at ${parked_until}. Call get_run after that.`;
  return `The run is not finished. Call wait_run with ${run_id} for its result, or stop_run to end it.`;
}

function omitNulls(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null && field !== undefined));
}
