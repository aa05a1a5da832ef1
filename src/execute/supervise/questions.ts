import { isDeepStrictEqual } from "node:util";
import type { RunEvent } from "../../model/event.ts";
import type { Answer, Decision, Invocation, Question } from "../../model/executor.ts";
import type { Redactor } from "../../model/process.ts";
import { startPausableTimer, type PausableTimer } from "./pausable-timer.ts";

/** The questions of one attempt. Each is answered from a grant or an earlier answer, by a person, or with `park`. */
export interface Questions {
  ask(question: Question): Promise<Answer>;
  /** Delivers a person's decision. A decision for a question that is not open is ignored with a notice. */
  answer(given: { request_id: string; answer: Decision }): void;
  /** Answers all open and later questions with `park`. Returns false if none is open or the executor cannot park. */
  park(): boolean;
  /** Whether the run waits for a person. */
  readonly waiting: boolean;
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

const unattended =
  "Denied: nobody attends this run, so nobody can be asked. Start it with `attended: true`, or from a terminal, to let a person decide.";
/** A question is recorded as an event, and the journal shortens larger events. */
const maxQuestionLength = 1_000_000;
const tooLarge = `Denied: the question is longer than ${maxQuestionLength} characters, the most that a person can be asked. Make the tool's input shorter.`;
const reused = "Denied: this run already used the same request_id for another question.";

interface Asked {
  question: Question;
  answer: Promise<Answer>;
  settle(answer: Answer): void;
}

export function createQuestions(options: QuestionsOptions): Questions {
  const { invocation, signal, record, onNotice } = options;
  const granted = new Set(invocation.granted_tools);
  // An attempt that starts from scratch may use the same ids for other questions.
  const earlier = invocation.continues ? invocation.answers : [];
  const asked = new Map<string, Asked>();
  const open = new Set<string>();
  let isParking = false;
  let parkTimer: PausableTimer | null = null;

  /** The input as the record has it, to compare with the question of an earlier attempt. */
  function asRecorded(input: unknown): unknown {
    return JSON.parse(JSON.stringify(options.redact({ input }).input ?? null)) as unknown;
  }

  /** null if a person has to decide. */
  function decide(question: Question): Decision | null {
    const { request_id, tool } = question;
    const decided = earlier.find(
      (one) =>
        one.request_id === request_id && one.tool === tool && isDeepStrictEqual(one.input, asRecorded(question.input)),
    );
    if (decided) return decided.answer;
    const decision = { type: "permission_decision", request_id } as const;
    if (!invocation.attended) {
      record({ type: "permission_request", ...question });
      record({ ...decision, decision: "deny", by: "unattended", message: unattended });
      return { decision: "deny", message: unattended };
    }
    if (!granted.has(tool)) return null;
    record({ ...decision, decision: "allow", by: "session" });
    return { decision: "allow" };
  }

  function wait(question: Question): Promise<Answer> {
    const { request_id, tool } = question;
    let settle!: Asked["settle"];
    const answer = new Promise<Answer>((resolve) => (settle = resolve));
    asked.set(request_id, { question, answer, settle });
    record({ type: "permission_request", ...question });
    record({ type: "status", status: "waiting", reason: tool });
    open.add(request_id);
    if (open.size === 1) options.onWaiting();
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
    open.delete(request_id);
    if (open.size === 0) {
      parkTimer?.stop();
      if (!isParking && !signal.aborted) record({ type: "status", status: "running" });
      options.onSettled();
    }
    asked.get(request_id)!.settle(answer);
  }

  function closeAll(answer: Answer): void {
    for (const request_id of open) close(request_id, answer);
  }

  function park(): boolean {
    if (!options.canPark) return false;
    isParking = true;
    const any = open.size > 0;
    closeAll({ decision: "park" });
    return any;
  }

  signal.addEventListener("abort", () => closeAll({ decision: "stop" }), { once: true });

  return {
    async ask({ request_id, tool, input, effect, input_schema }) {
      if (signal.aborted) return { decision: "stop" };
      const question = {
        request_id,
        tool,
        input,
        ...(effect === undefined ? {} : { effect }),
        ...(input_schema === undefined ? {} : { input_schema }),
      };
      const before = asked.get(request_id);
      if (before)
        return isDeepStrictEqual(before.question, question) ? before.answer : { decision: "deny", message: reused };
      if (JSON.stringify(question).length > maxQuestionLength) {
        record({ type: "permission_decision", request_id, decision: "deny", by: "drover", message: tooLarge });
        return { decision: "deny", message: tooLarge };
      }
      return decide(question) ?? wait(question);
    },
    answer({ request_id, answer }) {
      if (!open.has(request_id)) {
        const why = asked.has(request_id) ? "the question is closed" : "the run did not ask it";
        return onNotice(`an answer to question ${request_id} was ignored: ${why}`);
      }
      if (answer.decision === "allow" && answer.remember) granted.add(asked.get(request_id)!.question.tool);
      close(request_id, answer);
    },
    park,
    get waiting() {
      return open.size > 0;
    },
  };
}
