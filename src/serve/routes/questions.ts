import type { Decision } from "../../model/executor.ts";
import type { Question } from "../../model/question.ts";
import type { BodyOf } from "../../wire/contracts.ts";
import type { AnswerDeps } from "../deps.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { parsePage } from "../page.ts";
import { notFound, Refusal, tooManyChecks } from "../refusal.ts";
import { routeWith } from "../route.ts";
import { people, getVisibleOwner, getSubject, submitters } from "../rule.ts";
import { toCursor } from "../../show/cursor.ts";

const route = routeWith<AnswerDeps>();

/** Routes that need only the record. Without a coordinator, an answered run continues once one is running again. */
export const questionRoutes = [
  route("GET /questions", {
    rule: { roles: people },
    async handle({ deps, principal, query: { limit, cursor, ...filter } }) {
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
  route("POST /runs/{run_id}/resume", {
    rule: { roles: submitters, object: "run" },
    async handle({ deps, principal, object: { run_id } }) {
      const [resumed] = await deps.store.apply([{ op: "resume_run", run_id, by: getSubject(principal) }]);
      const run = await deps.store.read.run(run_id);
      if (run === null || (!resumed.ok && resumed.conflict === "not_found")) throw notFound("run", "path.run_id");
      if (resumed.ok) return run;
      const waitsForAnswer = resumed.conflict === "wrong_state" && resumed.waits_for === "answer";
      throw new Refusal(
        409,
        "DROVER-API-030",
        waitsForAnswer
          ? "The run is waiting for an answer."
          : `The run is ${run.status}; only a parked run can be resumed.`,
        waitsForAnswer ? { next: "Answer its question; `drover questions` lists it." } : {},
      );
    },
  }),
  route("POST /runs/{run_id}/input", {
    rule: { roles: submitters, object: "run" },
    bodyLimit: 5 * 1024 * 1024,
    async handle({ deps, principal, object, body: { text } }) {
      const { run_id } = object;
      const [result] = await deps.store.apply([{ op: "send_input", run_id, text, by: getSubject(principal) }]);
      if (result.ok) return undefined;
      if (result.conflict === "not_found") throw notFound("run", "path.run_id");
      if (result.conflict === "no_input")
        throw new Refusal(
          409,
          "DROVER-API-033",
          `The executor ${result.executor} cannot read messages while it works.`,
          {
            next: "Wait until the run has ended, then submit the message as a new run with mode resume.",
          },
        );
      const status = result.conflict === "wrong_state" ? result.status : object.status;
      throw new Refusal(409, "DROVER-API-030", `The run is ${status}; only a running run accepts input.`, {
        next: "To continue its session, submit a new run with mode resume.",
      });
    },
  }),
  route("GET /usage", {
    rule: { roles: people },
    async handle({ deps, principal, query: { limit, ...filter } }) {
      const owner = getVisibleOwner(principal);
      return {
        items: await deps.store.read.usage(omitUndefined({ ...filter, created_by: owner ?? undefined }), limit),
      };
    },
  }),
  route("POST /runs/{run_id}/permissions/{request_id}", {
    rule: { roles: submitters, object: "run" },
    async handle({ deps, principal, object: { run_id }, params, body, signal }) {
      const request_id = params["request_id"] ?? "";
      const question = await deps.store.read.question(run_id, request_id);
      if (question === null) throw notFound("question", "path.request_id");
      if (question.decision !== null) throw alreadyDecided(question);
      await checkInput(question, body, deps, { caller: getSubject(principal), signal });
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

function alreadyDecided({ decision, answered_by, answered_at }: Question): Refusal {
  if (decision === "expired")
    return new Refusal(409, "DROVER-API-032", `The question expired at ${answered_at}, and its run has failed.`, {
      faults: [{ path: "path.request_id", message: "expired" }],
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
