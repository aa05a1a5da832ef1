import type { StoredEvent } from "../model/event.ts";
import type { Run } from "../model/run.ts";
import type { ApiClient } from "../wire/client.ts";

/**
 * Waits until the run has ended, or is parked until a person resumes it. Calls `onEvent` with each event and waits for
 * it. Rejects with the signal's reason when the signal is aborted; the run continues.
 */
export async function waitForRun(
  client: ApiClient,
  run_id: string,
  { signal, onEvent }: { signal?: AbortSignal; onEvent?: (stored: StoredEvent) => void | Promise<void> },
): Promise<Run> {
  for await (const stored of client.runs.follow(run_id, signal === undefined ? {} : { signal })) {
    await onEvent?.(stored);
    if (!isParked(stored)) continue;
    const run = await client.runs.get(run_id);
    if (needsPerson(run)) return run;
  }
  signal?.throwIfAborted();
  return client.runs.get(run_id);
}

function isParked({ event }: StoredEvent): boolean {
  return event.type === "status" && event.status === "parked";
}

/** Whether the run stays parked until a person resumes it: it waits neither for an answer nor for a time. */
function needsPerson({ status, parked_why, parked_until }: Run): boolean {
  return status === "parked" && parked_why !== "approval" && parked_until === null;
}
