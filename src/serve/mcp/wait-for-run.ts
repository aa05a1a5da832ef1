import { RequestError } from "../../model/errors.ts";
import type { StoredEvent } from "../../model/event.ts";
import type { Question } from "../../model/question.ts";
import type { Run } from "../../model/run.ts";
import { hasEnded } from "../../model/states.ts";
import type { ApiClient } from "../../wire/client.ts";

/** A run with the open questions that the caller may answer. */
export interface RunSnapshot {
  run: Run;
  questions: Question[];
}

/** Follows a run until it has ended, is parked, or asks a question that the caller may answer. */
export async function waitForRun(
  client: ApiClient,
  run_id: string,
  { signal, onEvent }: { signal: AbortSignal; onEvent: (event: StoredEvent) => void },
): Promise<RunSnapshot> {
  const first = await fetchRun(client, run_id);
  if (isSettled(first)) return first;
  for await (const stored of client.runs.follow(run_id, { signal })) {
    onEvent(stored);
    if (!maySettle(stored)) continue;
    const current = await fetchRun(client, run_id);
    if (isSettled(current)) return current;
  }
  return fetchRun(client, run_id);
}

export async function fetchRun(client: ApiClient, run_id: string): Promise<RunSnapshot> {
  const run = await client.runs.get(run_id);
  const mayHaveQuestions = run.status === "waiting" || run.status === "parked";
  return { run, questions: mayHaveQuestions ? await listOpenQuestions(client, run_id) : [] };
}

async function listOpenQuestions(client: ApiClient, run_id: string): Promise<Question[]> {
  try {
    return (await client.questions.list({ run_id })).items;
  } catch (error) {
    // An attempt token may not answer its child's questions, so it does not see them.
    if (error instanceof RequestError && error.code === "DROVER-API-011") return [];
    throw error;
  }
}

function isSettled({ run: { status }, questions }: RunSnapshot): boolean {
  return hasEnded(status) || status === "parked" || questions.length > 0;
}

function maySettle({ event }: StoredEvent): boolean {
  return event.type === "permission_request" || (event.type === "status" && event.status === "parked");
}
