import { useEffect, useRef, useState } from "react";
import { RequestError } from "../../../src/model/errors.ts";
import { hasEnded } from "../../../src/model/states.ts";
import type { Activity } from "../../data/activity.ts";
import { api } from "../../data/client.ts";
import type { MessageQueue, QueuedMessage } from "../../data/message-queue.ts";
import type { Run } from "../../data/queries.ts";
import type { RunLog } from "../../data/run-events.ts";
import { toastError } from "../../parts/toasts.tsx";

/** Counts finished tool calls and questions. A queued message is sent once this number grows. */
export function countFinishedSteps(activity: readonly Activity[]): number {
  return activity.filter(({ kind, to }) => (kind === "tool" || kind === "question") && to !== null).length;
}

/**
 * Sends queued messages, oldest first: to the active run between two of its steps, or as the next turn once the run has
 * completed. Sends nothing after a run that failed or was stopped.
 */
export function useQueueSender({
  queue,
  run,
  log,
  takesInput,
  startTurn,
}: {
  queue: MessageQueue;
  run: Run | undefined;
  log: RunLog;
  takesInput: boolean;
  startTurn: (text: string, idempotency_key: string) => Promise<void>;
}): void {
  const isSending = useRef(false);
  const [sentCount, setSentCount] = useState(0);
  const nextAction = run === undefined ? null : findNextAction(queue.messages, run, log, takesInput);
  useEffect(() => {
    if (nextAction === null || run === undefined || isSending.current) return;
    isSending.current = true;
    const { action, message } = nextAction;
    const sendNext = async (): Promise<boolean> => {
      if (action === "input" && !(await sendInput(run.run_id, message.text))) return false;
      if (action === "turn") await startTurn(message.text, message.id);
      if (action === "input") queue.markSent(message.id);
      else queue.remove(message.id);
      return true;
    };
    void withTabLock(run.run_id, sendNext)
      .catch((error: unknown) => (toastError(error), false))
      .then((wasSent) => {
        isSending.current = false;
        // Retry a refused message after the run's next step.
        if (wasSent) setSentCount((count) => count + 1);
      });
  }, [
    nextAction?.action,
    nextAction?.message.id,
    run?.run_id,
    run?.status,
    countFinishedSteps(log.activity),
    sentCount,
  ]);
}

function findNextAction(
  messages: readonly QueuedMessage[],
  run: Run,
  { activity, isLoaded }: RunLog,
  takesInput: boolean,
): { action: "input" | "turn" | "forget"; message: QueuedMessage } | null {
  const [message] = messages;
  if (message === undefined || !isLoaded) return null;
  const wasRead = activity.some((item) => item.kind === "user" && item.read && item.text === message.text);
  if (message.sent && wasRead) return { action: "forget", message };
  if (run.status === "completed") return { action: "turn", message };
  if (hasEnded(run.status) || message.sent) return null;
  const isActive = run.status === "running" || run.status === "waiting";
  return takesInput && isActive && countFinishedSteps(activity) > message.after ? { action: "input", message } : null;
}

/** The errors for a run that is not active and for an executor that takes no input while it works. */
const inputRefusedCodes: ReadonlySet<string> = new Set(["DROVER-API-030", "DROVER-API-033"]);

/** Returns false if the run cannot take input, so that the message waits for the next turn. */
export async function sendInput(run_id: string, text: string): Promise<boolean> {
  try {
    await api.runs.input(run_id, text);
    return true;
  } catch (error) {
    if (error instanceof RequestError && inputRefusedCodes.has(error.code)) return false;
    throw error;
  }
}

/**
 * Lets one tab send at a time. Browsers have no locks on plain HTTP outside loopback; there, the idempotency key keeps
 * a turn that is sent twice from starting two runs.
 */
async function withTabLock(run_id: string, action: () => Promise<boolean>): Promise<boolean> {
  if (!("locks" in navigator)) return action();
  return navigator.locks.request(`drover.queue.${run_id}`, { ifAvailable: true }, async (lock) =>
    lock === null ? false : action(),
  );
}
