import type { AnswerQuestion, QuestionResult, ResumeRun, SendInput } from "../../model/question.ts";
import { isAssigned } from "../../model/states.ts";
import { endRun } from "../moves/lose-run.ts";
import { move, updateRun } from "../moves/move.ts";
import { continueRun } from "../moves/park.ts";
import { decideQuestion, readOpenQuestions, formatStopMessage } from "../moves/questions.ts";
import { findEndingRun, type EndingRun } from "../moves/stored-run.ts";
import { first, type Work } from "../query.ts";
import { readQuestion } from "../reads/questions.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { grantTool } from "./grants.ts";
import { createInputEvent } from "./inputs.ts";
import { sendOrder } from "./orders.ts";
import { parseExecutor } from "./runner-row.ts";
import { storeEvent } from "./store-events.ts";

const selectNewest = `select * from questions where run_no = ? and request_id = ? order by attempt desc limit 1`;

const selectExecutor = `select executor from runners where runner_id = ?`;

export function* answerQuestion(tx: Transaction, op: AnswerQuestion): Work<QuestionResult> {
  const run = yield* findEndingRun(op.run_id);
  const [row] = run === null ? [] : yield first(selectNewest, run.run_no, toColumn(op.request_id));
  if (run === null || row === undefined) return { ok: false, conflict: "not_found" };
  const { decision: previousDecision } = row;
  if (previousDecision === null) {
    yield* decideQuestion(tx, run, row, op.answer, op.by);
    if ("remember" in op.answer && run.session_id !== null)
      yield* grantTool(run.session_id, fromColumn(String(row["tool"])));
    yield* applyAnswer(tx, run, op);
  }
  const question = yield* readQuestion(op.run_id, op.request_id);
  if (question === null) return { ok: false, conflict: "not_found" };
  if (previousDecision === null) return { ok: true, op: "answer_question", question };
  return {
    ok: false,
    conflict: previousDecision === "expired" || previousDecision === "superseded" ? "closed" : "answered",
    question,
  };
}

/** Applies the answer to the run: resumes it, ends it or sends the answer to its runner. */
function* applyAnswer(tx: Transaction, run: EndingRun, { request_id, answer, by }: AnswerQuestion): Work<void> {
  if (isAssigned(run.status)) yield* sendOrder(tx, run, { answer: { request_id, answer } });
  else if (answer.decision === "stop")
    return yield* endRun(tx, run, "failed", "permission_denied", formatStopMessage(by));
  const isOpen = (yield* readOpenQuestions(run)).length > 0;
  if (!isOpen && run.status === "waiting") yield* move(tx, run, "running", { cause: `Answered by ${by}.` });
  else if (!isOpen && run.status === "parked" && run.parked_why === "approval")
    yield* continueRun(tx, run, `Answered by ${by}.`, { ignoresLimits: true });
  // The next attempt gets the answer.
  else yield* updateRun(run, {});
}

export function* resumeRun(tx: Transaction, op: ResumeRun): Work<QuestionResult> {
  const run = yield* findEndingRun(op.run_id);
  if (run === null) return { ok: false, conflict: "not_found" };
  const isOpen = run.status === "parked" && run.asked === 1 && (yield* readOpenQuestions(run)).length > 0;
  if (run.status !== "parked" || isOpen)
    return { ok: false, conflict: "wrong_state", status: run.status, waits_for: isOpen ? "answer" : null };
  // Resuming a run by hand overrides the daily budget.
  const columns = run.parked_why === "budget" ? { budgeted: 0 } : {};
  yield* continueRun(tx, run, `Resumed by ${op.by}.`, { ignoresLimits: true, columns });
  return { ok: true, op: "resume_run" };
}

export function* sendInput(tx: Transaction, { run_id, text, by }: SendInput): Work<QuestionResult> {
  const run = yield* findEndingRun(run_id);
  if (run === null) return { ok: false, conflict: "not_found" };
  const isActive = isAssigned(run.status) && run.status !== "stopping";
  const [runner] = isActive ? yield first(selectExecutor, run.runner_id) : [];
  const executor = runner && parseExecutor(runner);
  if (executor?.can?.input === false) return { ok: false, conflict: "no_input", executor: executor.type };
  if (!isActive || !(yield* sendOrder(tx, run, { input: { text, seq: run.last_seq + 1 } })))
    return { ok: false, conflict: "wrong_state", status: run.status, waits_for: null };
  yield* storeEvent(tx, run, null, tx.now.toISOString(), createInputEvent(text, by));
  yield* updateRun(run, {});
  return { ok: true, op: "send_input" };
}
