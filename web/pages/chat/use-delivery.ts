import { useEffect, useRef, useState } from "react";
import { RequestError } from "../../../src/model/errors.ts";
import { isTerminal } from "../../../src/model/states.ts";
import type { Activity } from "../../data/activity.ts";
import { api } from "../../data/client.ts";
import type { MessageQueue, QueuedMessage } from "../../data/message-queue.ts";
import type { Run } from "../../data/queries.ts";
import type { RunLog } from "../../data/run-events.ts";
import { toastError } from "../../parts/toasts.tsx";

/** Tools and questions that are over. A message that waits is handed over when there is one more. */
export function stepsDone(activity: readonly Activity[]): number {
  return activity.filter(({ kind, to }) => (kind === "tool" || kind === "question") && to !== null).length;
}

/**
 * Sends what waits, the oldest first: to the run between two of its steps, or as the next turn when it has completed.
 * After a run that failed or was stopped nothing is sent by itself.
 */
export function useDelivery({
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
  const busy = useRef(false);
  const [delivered, setDelivered] = useState(0);
  const next = run === undefined ? null : nextDelivery(queue.messages, run, log, takesInput);
  useEffect(() => {
    if (next === null || run === undefined || busy.current) return;
    busy.current = true;
    const { how, message } = next;
    const deliver = async (): Promise<boolean> => {
      if (how === "input" && !(await handOver(run.run_id, message.text))) return false;
      if (how === "turn") await startTurn(message.text, message.id);
      if (how === "input") queue.markSent(message.id);
      else queue.remove(message.id);
      return true;
    };
    void oneTabAtATime(run.run_id, deliver)
      .catch((error: unknown) => (toastError(error), false))
      .then((done) => {
        busy.current = false;
        // one that was refused is tried again when the run has moved on
        if (done) setDelivered((count) => count + 1);
      });
  }, [next?.how, next?.message.id, run?.run_id, run?.status, stepsDone(log.activity), delivered]);
}

function nextDelivery(
  messages: readonly QueuedMessage[],
  run: Run,
  { activity, loaded }: RunLog,
  takesInput: boolean,
): { how: "input" | "turn" | "forget"; message: QueuedMessage } | null {
  const [message] = messages;
  if (message === undefined || !loaded) return null;
  const heard = activity.some((one) => one.kind === "user" && one.heard && one.text === message.text);
  if (message.sent && heard) return { how: "forget", message };
  if (run.status === "completed") return { how: "turn", message };
  if (isTerminal(run.status) || message.sent) return null;
  const atWork = run.status === "running" || run.status === "waiting";
  return takesInput && atWork && stepsDone(activity) > message.after ? { how: "input", message } : null;
}

/** The run is not at work (any more), or its executor reads nothing while it works. */
const refusals: ReadonlySet<string> = new Set(["DROVER-API-030", "DROVER-API-033"]);

/** False where the run does not take it: the message waits for the next turn. */
export async function handOver(run_id: string, text: string): Promise<boolean> {
  try {
    await api.runs.input(run_id, text);
    return true;
  } catch (error) {
    if (error instanceof RequestError && refusals.has(error.code)) return false;
    throw error;
  }
}

/** Browsers have no locks on plain HTTP beyond loopback; a turn that is sent twice is one run even so. */
async function oneTabAtATime(run_id: string, act: () => Promise<boolean>): Promise<boolean> {
  if (!("locks" in navigator)) return act();
  return navigator.locks.request(`drover.queue.${run_id}`, { ifAvailable: true }, async (lock) =>
    lock === null ? false : act(),
  );
}
