import { RequestError } from "../model/errors.ts";
import type { Question } from "../model/question.ts";
import type { ApiClient } from "../wire/client.ts";
import { findRunId } from "./find-id.ts";
import { shortInput, visible } from "./question-view.ts";

/**
 * Finds a question of a run: its only open one, or the one whose request id starts with `request`. Closed questions are
 * found by request id as well, so that a late answer can be refused with the name of who answered first.
 */
export async function findQuestion(client: ApiClient, run: string, request: string | undefined): Promise<Question> {
  const run_id = await findRunId(client, run);
  const open = (await client.questions.list({ run_id, open: true, limit: 1000 })).items;
  if (request === undefined) {
    if (open.length === 1) return open[0]!;
    throw open.length > 1 ? ambiguous(run_id, open) : noOpenQuestion(run_id, await lastClosed(client, run_id));
  }
  const closed = open.some(({ request_id }) => request_id === request)
    ? []
    : (await client.questions.list({ run_id, open: false, limit: 1000 })).items;
  const exact = [...open, ...closed.toReversed()].find(({ request_id }) => request_id === request);
  if (exact) return exact;
  const matches = open.filter(({ request_id }) => request_id.startsWith(request));
  if (matches.length > 1) throw ambiguous(run_id, matches);
  const found = matches[0] ?? closed.findLast(({ request_id }) => request_id.startsWith(request));
  if (found) return found;
  throw new RequestError({
    code: "DROVER-USE-008",
    field: "REQUEST",
    message: `Run ${run_id} has no question ${request}.`,
    next:
      open.length > 0
        ? `Its open questions: ${open.map(brief).join("; ")}.`
        : "Run `drover questions` to see the open questions.",
  });
}

async function lastClosed(client: ApiClient, run_id: string): Promise<Question | undefined> {
  return (await client.questions.list({ run_id, open: false, limit: 1000 })).items.at(-1);
}

function ambiguous(run_id: string, open: readonly Question[]): RequestError {
  return new RequestError({
    code: "DROVER-USE-008",
    field: "REQUEST",
    message: `Run ${run_id} has ${open.length} open questions: ${open.map(brief).join("; ")}.`,
    next: `Name one: drover runs approve ${run_id} ${open[0]!.request_id}`,
  });
}

function brief({ request_id, tool, input }: Question): string {
  return `${visible(request_id)} (${visible(tool)} ${shortInput(input)})`;
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
  const at = answered_at ? ` at ${answered_at}` : "";
  if (decision === "expired") return `Its question about ${visible(tool)} expired${at}.`;
  if (decision === "superseded")
    return `Its question about ${visible(tool)} was closed${at}: the run ended, or a later attempt asked again.`;
  return `${visible(answered_by ?? "Somebody")} answered its question about ${visible(tool)} with ${decision}${at}.`;
}
