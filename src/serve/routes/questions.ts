import type { Decision } from "../../model/executor.ts";
import type { Question } from "../../model/question.ts";
import type { BodyOf } from "../../wire/contracts.ts";
import type { AnswerDeps } from "../deps.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { parsePage } from "../page.ts";
import { notFound, Refusal, tooManyChecks } from "../refusal.ts";
import { createRouteBuilder } from "../route.ts";
import { people, getVisibleOwner, getSubject, submitters } from "../rule.ts";
import { toCursor } from "../../show/cursor.ts";

const route = createRouteBuilder<AnswerDeps>();

/**
 * Routes that need only the record. If a question is answered while no coordinator is running, its run continues when the
 * coordinator is back.
 */
export const questionRoutes = [
  route("GET /questions", {
    rule: { roles: people },
    async handle({ deps, principal, query: { limit, cursor, ...filter } }) {
      // Questions are listed oldest first, so the page starts after the cursor.
      const { before: after } = parsePage("questions", limit, cursor);
      const owner = getVisibleOwner(principal);
      const page = await deps.store.read.questions(
        omitUndefined({ ...filter, created_by: owner ?? undefined }),
        omitUndefined({ limit, after }),
      );
      const { items, next, count } = page;
      return { items, next_cursor: next === null ? null : toCursor("questions", next), count };
    },
  }),
  route("POST /runs/{run_id}/permissions/{request_id}", {
    rule: { roles: submitters, object: "run" },
    async handle({ deps, principal, object: { run_id }, params, body, signal }) {
      const request_id = params["request_id"] ?? "";
      const question = await deps.store.read.question(run_id, request_id);
      if (question === null) throw notFound("question", "path.request_id");
      if (question.decision !== null) throw alreadyDecided(question);
      await checkInput(question, body, deps, { subject: getSubject(principal), signal });
      const by = getSubject(principal);
      const [answered] = await deps.store.apply([
        { op: "answer_question", run_id, request_id, answer: toDecision(body), by },
      ]);
      if (answered.ok) return answered.question;
      throw "question" in answered ? alreadyDecided(answered.question) : notFound("question", "path.request_id");
    },
  }),
];

type Body = BodyOf<"POST /runs/{run_id}/permissions/{request_id}">;

function toDecision({ decision, input, remember, message }: Body): Decision {
  return decision === "allow"
    ? { decision, ...omitUndefined({ input, remember }) }
    : { decision, ...omitUndefined({ message }) };
}

/** Validates edited input against the tool's schema. */
async function checkInput(
  { tool, input_schema }: Question,
  { input }: Body,
  deps: AnswerDeps,
  requester: Parameters<AnswerDeps["checkInput"]>[2],
): Promise<void> {
  if (input === undefined || input_schema === null) return;
  const faults = await deps.checkInput(input_schema, input, requester);
  const [first] = faults;
  if (first === undefined) return;
  if (first.retry_after_seconds !== undefined) throw tooManyChecks(first.retry_after_seconds);
  throw new Refusal(400, first.code, `The edited input does not match the schema of the tool ${tool}.`, {
    faults: faults.map(({ path, message }) => ({ path: `body.input${path}`, message })),
    next: "Send input that matches the question's input_schema, or omit it.",
  });
}

function alreadyDecided({ run_id, decision, answered_by, answered_at }: Question): Refusal {
  if (decision === "expired")
    return new Refusal(409, "DROVER-API-032", `The question expired at ${answered_at}, and its run has failed.`, {
      faults: [{ path: "path.request_id", message: "expired" }],
      next: `Start the run again with \`drover runs retry ${run_id}\`.`,
    });
  if (decision === "superseded")
    return new Refusal(
      409,
      "DROVER-API-032",
      "The question is closed: its run has ended, or a new attempt has asked again.",
      {
        faults: [{ path: "path.request_id", message: "superseded" }],
        next: "List the open questions with GET /questions.",
      },
    );
  return new Refusal(409, "DROVER-API-031", `${answered_by} already answered with ${decision} at ${answered_at}.`, {
    faults: [{ path: "path.request_id", message: `answered by ${answered_by} at ${answered_at}` }],
    next: "Nothing to do: the first answer counts.",
  });
}
