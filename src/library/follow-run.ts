import { RequestError } from "../model/errors.ts";
import type { RunEvent, StoredEvent } from "../model/event.ts";
import type { Run } from "../model/run.ts";
import type { ApiClient } from "../wire/client.ts";
import type { Callbacks } from "./callbacks.ts";
import { toRunnerResult } from "./runner-result.ts";
import type { RunnerResult } from "./types.ts";

export interface FollowOptions {
  signal?: AbortSignal | undefined;
  /** Where the caller gets messages from: the executor in this process, or the log of the run. */
  messages: "executor" | "log";
}

/** Follows a run to its end, passing its messages and questions to the caller. */
export async function followRun(
  client: ApiClient,
  run: Run,
  executor: string | null,
  callbacks: Callbacks,
  { signal, messages }: FollowOptions,
): Promise<RunnerResult> {
  const stop = (): void =>
    void client.runs.stop(run.run_id).catch((error: unknown) => {
      process.emitWarning(`The run ${run.run_id} could not be stopped: ${String(error)}`, "DroverWarning");
    });
  const desk = openDesk(client, run, callbacks);
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted) stop();
  try {
    for await (const stored of client.runs.follow(run.run_id)) {
      const { event } = stored;
      if (messages === "log" && "raw" in event && event.raw !== undefined) await callbacks.message(event.raw);
      if (event.type === "permission_request") desk?.ask(event);
      if (isParked(stored) && (await staysParked(client, run.run_id))) break;
    }
  } finally {
    desk?.close();
    signal?.removeEventListener("abort", stop);
  }
  return toRunnerResult(await client.runs.get(run.run_id), executor, callbacks);
}

type Asked = Extract<RunEvent, { type: "permission_request" }>;

/** Where the caller answers questions; null where they are none of its business. */
function openDesk(client: ApiClient, { run_id, agent_name, attended }: Run, { question, report }: Callbacks) {
  if (question === null || !attended) return null;
  /** A run that was parked asks again, while the caller still thinks. */
  const asked = new Set<string>();
  let open = true;
  async function answer({ request_id, tool, input, effect, input_schema }: Asked): Promise<void> {
    const decision = await question!({
      jobId: run_id,
      requestId: request_id,
      agentName: agent_name,
      tool,
      input,
      ...(effect === undefined ? {} : { effect }),
      ...(input_schema === undefined ? {} : { inputSchema: input_schema }),
    });
    asked.delete(request_id);
    if (!open) return;
    try {
      await client.questions.answer(run_id, request_id, decision);
    } catch (error) {
      if (!open || isClosed(error)) return;
      // an answer that cannot be taken must not leave the run waiting
      report("onQuestion", error);
      const message = "The answer could not be used.";
      await client.questions.answer(run_id, request_id, { decision: "deny", message });
    }
  }
  return {
    ask(event: Asked): void {
      if (asked.has(event.request_id)) return;
      asked.add(event.request_id);
      answer(event).catch((error: unknown) => {
        if (open && !isClosed(error)) report("onQuestion", error);
      });
    },
    close(): void {
      open = false;
    },
  };
}

/** Somebody else answered first, or the question is no longer one. */
function isClosed(error: unknown): boolean {
  return error instanceof RequestError && ["DROVER-API-031", "DROVER-API-032"].includes(error.code);
}

function isParked({ event }: StoredEvent): boolean {
  return event.type === "status" && event.status === "parked";
}

/** Neither time nor an answer ends it: somebody has to resume it. */
async function staysParked(client: ApiClient, run_id: string): Promise<boolean> {
  const { status, parked_why, parked_until } = await client.runs.get(run_id);
  return status === "parked" && parked_why !== "approval" && parked_until === null;
}
