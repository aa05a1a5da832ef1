import { isDeepStrictEqual } from "node:util";
import type { RunEvent } from "../../model/event.ts";
import type { Answer, Decision, Invocation, Question } from "../../model/executor.ts";
import type { Redactor } from "../../model/process.ts";
import { startPausableTimer, type PausableTimer } from "./pausable-timer.ts";

/** The questions of one attempt. Each is answered from a grant or an earlier answer, by a person, or with `park`. */
export interface Questions {
  ask(question: Question): Promise<Answer>;
  /** Delivers a person's decision. A decision for a question that is not open is ignored with a notice. */
  answer(decision: { request_id: string; answer: Decision }): void;
  /** Answers all open and later questions with `park`. Returns false if none is open or the executor cannot park. */
  park(): boolean;
  /** Whether the run waits for a person. */
  readonly isWaiting: boolean;
}

export interface QuestionsOptions {
  invocation: Invocation;
  canPark: boolean;
  /** Aborted when the run stops, which ends the wait at once. */
  signal: AbortSignal;
  record: (event: RunEvent) => void;
  redact: Redactor["value"];
  onWaiting: () => void;
  /** Called when the last open question is closed. */
  onSettled: () => void;
  monotonic: () => number;
  onNotice: (message: string) => void;
}

const defaultParkSeconds = 600;

const unattendedMessage =
  "Denied: this run is unattended, so no person can be asked. Start it with `attended: true`, or from a terminal, to let a person decide.";
/** A question is recorded as an event, and the journal shortens larger events. */
const maxQuestionLength = 1_000_000;
const tooLargeMessage = `Denied: the question is longer than ${maxQuestionLength} characters. Shorten the tool's input.`;
const reusedIdMessage = "Denied: this run already used the same request_id for another question.";

interface AskedQuestion {
  question: Question;
  answer: Promise<Answer>;
  settle(answer: Answer): void;
}

export function undeclaredQuestion(executor: string): string {
  return `The executor ${executor} asks a question but does not declare can: { ask: true }.`;
}

export function createQuestions(options: QuestionsOptions): Questions {
  const { invocation, signal, record, onNotice } = options;
  const granted = new Set(invocation.granted_tools);
  // An attempt that starts from scratch may use the same ids for other questions.
  const earlierAnswers = invocation.continues ? invocation.answers : [];
  const askedQuestions = new Map<string, AskedQuestion>();
  const openIds = new Set<string>();
  let isParking = false;
  let parkTimer: PausableTimer | null = null;

  /** Returns the input as it is recorded, to compare it with the question of an earlier attempt. */
  function toRecordedInput(input: unknown): unknown {
    return JSON.parse(JSON.stringify(options.redact({ input }).input ?? null)) as unknown;
  }

  /** Returns null if a person has to decide. */
  function decide(question: Question): Decision | null {
    const { request_id, tool } = question;
    const earlierAnswer = earlierAnswers.find(
      (answered) =>
        answered.request_id === request_id &&
        answered.tool === tool &&
        isDeepStrictEqual(answered.input, toRecordedInput(question.input)),
    );
    if (earlierAnswer) return earlierAnswer.answer;
    const decision = { type: "permission_decision", request_id } as const;
    if (!invocation.attended) {
      record({ type: "permission_request", ...question });
      record({ ...decision, decision: "deny", by: "unattended", message: unattendedMessage });
      return { decision: "deny", message: unattendedMessage };
    }
    if (!granted.has(tool)) return null;
    record({ ...decision, decision: "allow", by: "session" });
    return { decision: "allow" };
  }

  function askPerson(question: Question): Promise<Answer> {
    const { request_id, tool } = question;
    let settle!: AskedQuestion["settle"];
    const answer = new Promise<Answer>((resolve) => (settle = resolve));
    askedQuestions.set(request_id, { question, answer, settle });
    record({ type: "permission_request", ...question });
    record({ type: "status", status: "waiting", reason: tool });
    openIds.add(request_id);
    if (openIds.size === 1) options.onWaiting();
    if (isParking) park();
    else restartParkTimer();
    return answer;
  }

  function restartParkTimer(): void {
    parkTimer?.stop();
    const seconds = invocation.agent.park_after_seconds ?? defaultParkSeconds;
    parkTimer = startPausableTimer(options.canPark ? seconds * 1000 : null, park, options.monotonic);
  }

  function close(request_id: string, answer: Answer): void {
    openIds.delete(request_id);
    if (openIds.size === 0) {
      parkTimer?.stop();
      if (!isParking && !signal.aborted) record({ type: "status", status: "running" });
      options.onSettled();
    }
    askedQuestions.get(request_id)!.settle(answer);
  }

  function closeAll(answer: Answer): void {
    for (const request_id of openIds) close(request_id, answer);
  }

  function park(): boolean {
    if (!options.canPark) return false;
    isParking = true;
    const hadOpenQuestions = openIds.size > 0;
    closeAll({ decision: "park" });
    return hadOpenQuestions;
  }

  signal.addEventListener("abort", () => closeAll({ decision: "stop" }), { once: true });

  return {
    async ask({ request_id: id, tool, input, effect, input_schema }) {
      if (signal.aborted) return { decision: "stop" };
      // People see the recorded id, and answer with it.
      const { request_id } = options.redact({ request_id: id });
      const question = {
        request_id,
        tool,
        input,
        ...(effect === undefined ? {} : { effect }),
        ...(input_schema === undefined ? {} : { input_schema }),
      };
      const previous = askedQuestions.get(request_id);
      if (previous)
        return isDeepStrictEqual(previous.question, question)
          ? previous.answer
          : { decision: "deny", message: reusedIdMessage };
      if (JSON.stringify(question).length > maxQuestionLength) {
        record({ type: "permission_decision", request_id, decision: "deny", by: "drover", message: tooLargeMessage });
        return { decision: "deny", message: tooLargeMessage };
      }
      return decide(question) ?? askPerson(question);
    },
    answer({ request_id, answer }) {
      if (!openIds.has(request_id)) {
        const reason = askedQuestions.has(request_id) ? "the question is closed" : "the run did not ask it";
        return onNotice(`an answer to question ${request_id} was ignored: ${reason}`);
      }
      if (answer.decision === "allow" && answer.remember) granted.add(askedQuestions.get(request_id)!.question.tool);
      close(request_id, answer);
    },
    park,
    get isWaiting() {
      return openIds.size > 0;
    },
  };
}
