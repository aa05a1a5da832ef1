import type { NumberedEvent, PermissionRequestEvent } from "../../model/event.ts";
import type { Decision, Invocation } from "../../model/executor.ts";
import { sendOrder } from "../ops/orders.ts";
import { storeEvent } from "../ops/store-events.ts";
import { all, first, write, type Row, type Work } from "../query.ts";
import { fromColumn, textOrNull, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { readAgentSnapshot } from "./agent-snapshot.ts";
import type { StoredRun } from "./stored-run.ts";

/** Recorded in place of a user if no person decided. */
const systemDecider = "drover";
const defaultAnswerSeconds = 7 * 24 * 60 * 60;

const insertQuestion = `
  insert into questions (run_no, request_id, attempt, created_by, tool, input, effect, input_schema, asked_at, expires_at)
  select run_no, ?, ?, created_by, ?, ?, ?, ?, ?, ? from runs where run_no = ?
  on conflict (run_no, request_id, attempt) do nothing returning question_no`;
const selectQuestion = `select * from questions where run_no = ? and request_id = ? and attempt = ?`;
const selectOpen = `select * from questions where run_no = ? and decision is null order by question_no`;
const selectDecided = `
  select * from questions where run_no = ? and attempt < ? and decision in ('allow', 'deny', 'stop') order by attempt`;
const selectQuestionsOfAttempt = `select decision, answered_by from questions where run_no = ? and attempt = ?`;
const closeQuestion = `
  update questions set decision = ?, answered_by = ?, answered_at = ?, message = ?, edited_input = ?, remember = ?
  where question_no = ?`;

/**
 * Stores the questions in these events. Returns what the run is waiting for: the tool of its oldest open question, null
 * if nothing, or undefined if the run's own events decide.
 */
export function* storeQuestions(
  tx: Transaction,
  run: StoredRun,
  events: readonly NumberedEvent[],
): Work<string | null | undefined> {
  if (run.attended !== 1 || run.agent_rev_id === null || run.status === "stopping") return undefined;
  const requests = events.flatMap(({ event }) => (event.type === "permission_request" ? [event] : []));
  if (requests.length === 0 && run.asked === 0) return undefined;
  const secondsToAnswer = requests.length === 0 ? 0 : yield* readAnswerSeconds(run);
  for (const event of requests) yield* storeQuestion(tx, run, event, tx.now.getTime() + secondsToAnswer * 1000);
  for (const { event } of events)
    if (event.type === "permission_decision" && event.decision === "superseded")
      yield* withdrawQuestion(tx, run, event);
  const [open] = yield first(selectOpen, run.run_no);
  return open === undefined ? null : fromColumn(String(open["tool"]));
}

function* readAnswerSeconds(run: StoredRun): Work<number> {
  return (yield* readAgentSnapshot(run))?.answer_within_seconds ?? defaultAnswerSeconds;
}

function* storeQuestion(
  tx: Transaction,
  run: StoredRun,
  event: PermissionRequestEvent,
  expires_at: number,
): Work<void> {
  const { request_id, tool, input = null, effect = null, input_schema } = event;
  const schema = input_schema === undefined ? null : JSON.stringify(input_schema);
  const columns = [toColumn(request_id), run.attempt, toColumn(tool), JSON.stringify(input), effect, schema];
  const [inserted] = yield first(insertQuestion, ...columns, tx.now.toISOString(), expires_at, run.run_no);
  run.asked = 1;
  if (inserted !== undefined) return;
  // A repeated question: send the existing answer instead of asking again.
  const [existing = {}] = yield first(selectQuestion, run.run_no, toColumn(request_id), run.attempt);
  const answer = toDecision(existing);
  if (answer !== null) yield* sendOrder(tx, run, { answer: { request_id, answer } });
}

/** Closes a question that the executor no longer waits for. */
function* withdrawQuestion(tx: Transaction, run: StoredRun, { request_id }: { request_id: string }): Work<void> {
  const [row] = yield first(selectQuestion, run.run_no, toColumn(request_id), run.attempt);
  if (row === undefined || row["decision"] !== null) return;
  yield write(
    closeQuestion,
    "superseded",
    systemDecider,
    tx.now.toISOString(),
    null,
    null,
    null,
    Number(row["question_no"]),
  );
}

export function* readOpenQuestions(run: StoredRun): Work<Row[]> {
  return yield all(selectOpen, run.run_no);
}

/** Summarizes the questions of the run's last attempt. */
export function* summarizeDecisions(run: StoredRun): Work<{ open: boolean; decided: boolean; stopped: string | null }> {
  const rows = yield all(selectQuestionsOfAttempt, run.run_no, run.attempt);
  const stopped = rows.find(({ decision }) => decision === "stop");
  return {
    open: rows.some(({ decision }) => decision === null),
    decided: rows.some(({ decision }) => decision === "allow" || decision === "deny" || decision === "stop"),
    stopped: stopped === undefined ? null : textOrNull(stopped["answered_by"]),
  };
}

/** Whether a question of the last attempt expired, which ends the attempt. */
export function* hasExpiredQuestion(run: StoredRun): Work<boolean> {
  return (yield all(selectQuestionsOfAttempt, run.run_no, run.attempt)).some(({ decision }) => decision === "expired");
}

export function formatStopMessage(by: string): string {
  return `${by} denied its request and stopped it.`;
}

/** Closes an open question and logs the decision in its run. */
export function* decideQuestion(
  tx: Transaction,
  run: StoredRun,
  question: Row,
  answer: Decision | { decision: "expired" | "superseded" },
  by = systemDecider,
): Work<void> {
  const at = tx.now.toISOString();
  const request_id = fromColumn(String(question["request_id"]));
  const message = "message" in answer ? answer.message : undefined;
  const input = "input" in answer ? answer.input : undefined;
  const remember = "remember" in answer ? answer.remember : undefined;
  const edited = input === undefined ? null : JSON.stringify(input);
  const { decision } = answer;
  const columns = [decision, toColumn(by), at, toColumn(message ?? null), edited, remember ?? null];
  yield write(closeQuestion, ...columns, Number(question["question_no"]));
  const decisionFields = {
    decision,
    by,
    ...(message === undefined ? {} : { message }),
    ...(input === undefined ? {} : { input }),
    ...(remember === undefined ? {} : { remember }),
  };
  yield* storeEvent(tx, run, null, at, { type: "permission_decision", request_id, ...decisionFields });
  if (decision === "superseded") return;
  const questionFields = {
    request_id,
    tool: fromColumn(String(question["tool"])),
    asked: JSON.parse(String(question["input"])),
  };
  tx.audit.push({
    kind: "decision",
    execution_id: null,
    run_id: run.run_id,
    attempt: Number(question["attempt"]),
    at,
    body: JSON.stringify({ ...questionFields, ...decisionFields }),
  });
}

/** Closes all open questions: a new attempt asks them again, and a run that ends needs no answers. */
export function* supersedeQuestions(tx: Transaction, run: StoredRun): Work<void> {
  for (const row of yield* readOpenQuestions(run)) yield* decideQuestion(tx, run, row, { decision: "superseded" });
}

/** Decisions of people on questions of earlier attempts. For a repeated request id the latest decision counts. */
export function* readAnswers(run_no: number, attempt: number): Work<Invocation["answers"]> {
  const answers = new Map<string, Invocation["answers"][number]>();
  for (const row of yield all(selectDecided, run_no, attempt)) {
    const [answer, request_id] = [toDecision(row), fromColumn(String(row["request_id"]))];
    const input = JSON.parse(String(row["input"])) as unknown;
    if (answer !== null) answers.set(request_id, { request_id, tool: fromColumn(String(row["tool"])), input, answer });
  }
  return [...answers.values()];
}

/** Returns null if no person has decided. */
function toDecision(row: Row): Decision | null {
  const message = textOrNull(row["message"]);
  const withMessage = message === null ? {} : { message };
  switch (row["decision"]) {
    case "allow": {
      const edited = row["edited_input"];
      return {
        decision: "allow",
        ...(typeof edited === "string" ? { input: JSON.parse(edited) as unknown } : {}),
        ...(row["remember"] === "session" ? { remember: "session" } : {}),
      };
    }
    case "deny":
      return { decision: "deny", ...withMessage };
    case "stop":
      return { decision: "stop", ...withMessage };
    default:
      return null;
  }
}
