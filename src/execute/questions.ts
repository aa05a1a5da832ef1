import type { RunEvent } from "../model/event.ts";
import type { Answer, Question } from "../model/executor.ts";

/** What a run asked and a person has not answered yet. */
export interface Questions {
  ask(question: Question): Promise<Answer>;
  answer(request_id: string, answer: Answer): void;
}

export interface QuestionsOptions {
  attended: boolean;
  emit: (event: RunEvent) => void;
  signal: AbortSignal;
  /** While somebody is asked: the time stands still and the slot is another's. */
  onWaiting: () => void;
  onGoingOn: () => void;
}

export function createQuestions({ attended, emit, signal, onWaiting, onGoingOn }: QuestionsOptions): Questions {
  const open = new Map<string, (answer: Answer) => void>();

  const waitFor = (request_id: string): Promise<Answer> =>
    new Promise((resolve) => {
      const settle = (answer: Answer): void => {
        open.delete(request_id);
        signal.removeEventListener("abort", stop);
        resolve(answer);
      };
      const stop = (): void => settle({ decision: "stop" });
      open.set(request_id, settle);
      signal.addEventListener("abort", stop, { once: true });
      if (signal.aborted) stop();
    });

  return {
    async ask({ request_id, tool, input }) {
      emit({ type: "permission_request", request_id, tool, input });
      if (!attended) {
        emit({ type: "permission_decision", request_id, decision: "deny", by: "unattended" });
        return { decision: "deny", message: "Nobody attends this run, so nobody can allow it." };
      }
      const first = open.size === 0;
      if (first) {
        emit({ type: "status", status: "waiting", reason: `permission for ${tool}` });
        onWaiting();
      }
      const answer = await waitFor(request_id);
      if (open.size === 0 && !signal.aborted) {
        onGoingOn();
        emit({ type: "status", status: "running" });
      }
      return answer;
    },
    answer(request_id, answer) {
      open.get(request_id)?.(answer);
    },
  };
}
