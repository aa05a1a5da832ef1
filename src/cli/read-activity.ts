import type { Question } from "../model/question.ts";
import type { RunRow } from "../model/store.ts";
import { type RunStatus, statusSets } from "../model/states.ts";
import type { ApiClient } from "../wire/client.ts";
import type { Output } from "../wire/contracts.ts";

/** The latest items, and how many there are. */
export interface Group<T = RunRow> {
  items: T[];
  count: number;
}

export type PendingRun = RunRow & { why: Output<"GET /runs/{run_id}/why">["why"] };

export interface Activity {
  runners: Output<"GET /runners">["items"];
  running: Group;
  pending: Group<PendingRun>;
  questions: Group<Question>;
  parked: Group;
  /** Runs that failed in the last 24 hours. */
  failed: Group;
}

/** How many items of each group are listed. */
const maxListed = 5;

/** Reads what `drover status` shows. Only a coordinator knows why a run is pending. */
export async function readActivity(client: ApiClient, hasCoordinator: boolean): Promise<Activity> {
  const since = new Date(Date.now() - 24 * 3_600_000).toISOString();
  const list = async (status: RunStatus[]): Promise<Group> =>
    toGroup((await client.runs.list({ status, limit: 1000 })).items);
  const [runners, running, pending, questions, parked, failed] = await Promise.all([
    client.runners.list(),
    list(statusSets.busy),
    list(["pending"]),
    client.questions.list({ open: true, limit: maxListed }),
    list(["parked"]),
    client.runs.list({ status: ["failed"], since, limit: 1000 }),
  ]);
  return {
    runners: runners.items,
    running,
    pending: { ...pending, items: await explainPending(client, pending.items, hasCoordinator) },
    questions: { items: questions.items, count: questions.count ?? questions.items.length },
    parked,
    failed: toGroup(failed.items),
  };
}

function toGroup(rows: readonly RunRow[]): Group {
  return { items: rows.slice(0, maxListed), count: rows.length };
}

function explainPending(client: ApiClient, rows: readonly RunRow[], hasCoordinator: boolean): Promise<PendingRun[]> {
  return Promise.all(
    rows.map(async (row) => ({ ...row, why: hasCoordinator ? (await client.runs.why(row.run_id)).why : [] })),
  );
}
