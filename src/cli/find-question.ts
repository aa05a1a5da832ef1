import { RequestError } from "../model/errors.ts";
import type { Question } from "../model/question.ts";
import type { ApiClient } from "../wire/client.ts";
import { findRunId, newestKeyword } from "./find-id.ts";
import { summarizeInput, escapeInvisible } from "./question-view.ts";

/**
 * Finds the question that `request` means: its whole request id, the start or end of it, or `last` for the newest open
 * question. Without `request` the run must have exactly one open question. Closed questions are found too, so that the
 * refusal of a late answer can name the person who answered first.
 */
export async function findQuestion(client: ApiClient, run: string, request: string | undefined): Promise<Question> {
  const run_id = await findRunId(client, run);
  const openQuestions = (await client.questions.list({ run_id, open: true, limit: 1000 })).items;
  if (request === undefined) {
    if (openQuestions.length === 1) return openQuestions[0]!;
    throw openQuestions.length > 1
      ? ambiguousQuestion(run_id, openQuestions)
      : noOpenQuestion(run_id, await findLastClosed(client, run_id));
  }
  const closedQuestions = openQuestions.some(({ request_id }) => request_id === request)
    ? []
    : (await client.questions.list({ run_id, open: false, limit: 1000 })).items;
  const exactMatch = [...openQuestions, ...closedQuestions.toReversed()].find(
    ({ request_id }) => request_id === request,
  );
  if (exactMatch) return exactMatch;
  if (request === newestKeyword && openQuestions.length > 0) return openQuestions.at(-1)!;
  const isMatch = ({ request_id }: Question): boolean => request_id.startsWith(request) || request_id.endsWith(request);
  const matches = openQuestions.filter(isMatch);
  if (matches.length > 1) throw ambiguousQuestion(run_id, matches);
  const match = matches[0] ?? closedQuestions.findLast(isMatch);
  if (match) return match;
  throw new RequestError({
    code: "DROVER-USE-008",
    field: "REQUEST",
    message: `Run ${run_id} has no question ${request}.`,
    next:
      openQuestions.length > 0
        ? `Its open questions: ${openQuestions.map(describeQuestion).join("; ")}.`
        : "Run `drover questions` to see the open questions.",
  });
}

async function findLastClosed(client: ApiClient, run_id: string): Promise<Question | undefined> {
  return (await client.questions.list({ run_id, open: false, limit: 1000 })).items.at(-1);
}

function ambiguousQuestion(run_id: string, openQuestions: readonly Question[]): RequestError {
  return new RequestError({
    code: "DROVER-USE-008",
    field: "REQUEST",
    message: `Several open questions of run ${run_id} match: ${openQuestions.map(describeQuestion).join("; ")}.`,
    next: `Name one of them: drover runs approve ${run_id} ${openQuestions[0]!.request_id}`,
  });
}

function describeQuestion({ request_id, tool, input }: Question): string {
  return `${escapeInvisible(request_id)} (${escapeInvisible(tool)} ${summarizeInput(input)})`;
}

function noOpenQuestion(run_id: string, last: Question | undefined): RequestError {
  return new RequestError({
    code: "DROVER-USE-008",
    field: "RUN",
    message: `Run ${run_id} has no open question.${last ? ` ${describeClosed(last)}` : ""}`,
    next: "Run `drover questions` to see the open questions.",
  });
}

function describeClosed({ tool, decision, answered_by, answered_at }: Question): string {
  const when = answered_at ? ` at ${answered_at}` : "";
  if (decision === "expired") return `Its question about ${escapeInvisible(tool)} expired${when}.`;
  if (decision === "superseded")
    return `Its question about ${escapeInvisible(tool)} was closed${when}: the run ended, or a later attempt asked again.`;
  return `${escapeInvisible(answered_by ?? "Another user")} answered its question about ${escapeInvisible(tool)} with ${decision}${when}.`;
}
