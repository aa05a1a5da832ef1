import { RequestError } from "../model/errors.ts";
import type { PermissionRequestEvent } from "../model/event.ts";
import type { Run } from "../model/run.ts";
import type { ApiClient } from "../wire/client.ts";
import type { Callbacks } from "./callbacks.ts";
import { toRunnerResult } from "./runner-result.ts";
import type { RunnerResult } from "./types.ts";
import { waitForRun } from "./wait-for-run.ts";

export interface FollowOptions {
  signal?: AbortSignal | undefined;
  /** Whether messages come from the executor in this process or from the run's log. */
  messageSource: "executor" | "log";
}

/** Follows a run until it finishes, passing its messages and questions to the caller. */
export async function followRun(
  client: ApiClient,
  run: Run,
  executor: string | null,
  callbacks: Callbacks,
  { signal, messageSource }: FollowOptions,
): Promise<RunnerResult> {
  const onAbort = (): void =>
    void client.runs.stop(run.run_id).catch((error: unknown) => {
      process.emitWarning(
        `Run ${run.run_id} could not be stopped: ${String(error)} Stop it with: drover runs stop ${run.run_id}`,
        "DroverWarning",
      );
    });
  const questions = answerQuestions(client, run, callbacks);
  signal?.addEventListener("abort", onAbort, { once: true });
  if (signal?.aborted) onAbort();
  try {
    const finished = await waitForRun(client, run.run_id, {
      async onEvent({ event }) {
        if (messageSource === "log" && "raw" in event && event.raw !== undefined) await callbacks.onMessage(event.raw);
        if (event.type === "permission_request") questions?.ask(event);
      },
    });
    return toRunnerResult(finished, executor, callbacks);
  } finally {
    questions?.close();
    signal?.removeEventListener("abort", onAbort);
  }
}

/** Passes questions to the caller and sends back the answers. Returns null if the caller does not answer questions. */
function answerQuestions(client: ApiClient, { run_id, agent_name, attended }: Run, { onQuestion, report }: Callbacks) {
  if (onQuestion === null || !attended) return null;
  /** The ids of questions that the caller is deciding on. A run that was parked may ask them again in the meantime. */
  const pending = new Set<string>();
  let isOpen = true;
  async function answer({ request_id, tool, input, effect, input_schema }: PermissionRequestEvent): Promise<void> {
    const decision = await onQuestion!({
      jobId: run_id,
      requestId: request_id,
      agentName: agent_name,
      tool,
      input,
      ...(effect === undefined ? {} : { effect }),
      ...(input_schema === undefined ? {} : { inputSchema: input_schema }),
    });
    pending.delete(request_id);
    if (!isOpen) return;
    try {
      await client.questions.answer(run_id, request_id, decision);
    } catch (error) {
      if (!isOpen || isQuestionClosed(error)) return;
      // Deny the call, so that a rejected answer does not leave the run waiting.
      report("onQuestion", error);
      const message = "Denied: the coordinator rejected the answer from onQuestion.";
      await client.questions.answer(run_id, request_id, { decision: "deny", message });
    }
  }
  return {
    ask(event: PermissionRequestEvent): void {
      if (pending.has(event.request_id)) return;
      pending.add(event.request_id);
      answer(event).catch((error: unknown) => {
        if (isOpen && !isQuestionClosed(error)) report("onQuestion", error);
      });
    },
    close(): void {
      isOpen = false;
    },
  };
}

/** Whether the question was answered by another client, or is no longer open. */
function isQuestionClosed(error: unknown): boolean {
  return error instanceof RequestError && ["DROVER-API-031", "DROVER-API-032"].includes(error.code);
}
