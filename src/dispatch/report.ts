import type { Outcome } from "../model/executor.ts";
import { toResultEvent } from "../model/outcome.ts";
import type { ReportResponse, ReportRequest } from "../model/runner-port.ts";
import type { AppendEvents, FinishRun, OpResult, Store } from "../model/store.ts";
import { boundReport } from "./bound-report.ts";
import { toPortError } from "./poll.ts";

export interface ReportDeps {
  store: Pick<Store, "apply">;
  now: () => Date;
  leaseMs: number;
  /** Receives live text of attempts that this runner holds. It is never stored. */
  onPartials: (partials: ReportRequest["partials"]) => void;
}

type Attempt = { run_id: string; attempt: number };

/** Stores one report in one transaction: first its events and finishes, then the heartbeat. */
export async function report(
  fullRequest: ReportRequest,
  owner: string | undefined,
  deps: ReportDeps,
): Promise<ReportResponse> {
  const request = boundReport(fullRequest);
  const runner = { runner_id: request.runner_id, epoch: request.epoch, ...(owner === undefined ? {} : { owner }) };
  const writes = toWrites(request, runner, deps.now().toISOString());
  const results = await deps.store.apply([
    ...writes,
    {
      op: "heartbeat",
      ...runner,
      held: request.held,
      // Runs that finish in this report are no longer held afterwards and must not be reported as fenced.
      finishing: request.finishes.map(({ run_id, attempt }) => [run_id, attempt] as const),
      as_of_claim: request.as_of_claim,
      lease_ms: deps.leaseMs,
    } as const,
  ]);
  const heartbeat = results.at(-1);
  if (heartbeat === undefined || !("op" in heartbeat) || heartbeat.op !== "heartbeat") {
    throw toPortError(
      heartbeat !== undefined && "conflict" in heartbeat && heartbeat.conflict === "old_epoch"
        ? "old_epoch"
        : "unknown_runner",
    );
  }
  const response: ReportResponse = {
    acked: [],
    fenced: heartbeat.fenced.map(toAttempt),
    abandon: heartbeat.abandon.map(toAttempt),
  };
  // One result per write, in order, followed by the heartbeat's.
  writes.forEach((write, index) => addResult(response, write, results[index] as OpResult));
  const lostKeys = new Set([...response.fenced, ...response.abandon].map(toAttemptKey));
  const heldKeys = new Set(
    request.held
      .map(toAttempt)
      .map(toAttemptKey)
      .filter((key) => !lostKeys.has(key)),
  );
  const livePartials = request.partials.filter((partial) => heldKeys.has(toAttemptKey(partial)));
  if (livePartials.length > 0) deps.onPartials(livePartials);
  const overBudget = heartbeat.over_budget?.map(toAttempt);
  return {
    ...response,
    fenced: deduplicate(response.fenced),
    ...(overBudget === undefined ? {} : { over_budget: overBudget }),
  };
}

function toWrites(
  request: ReportRequest,
  runner: FinishRun["runner"] & object,
  at: string,
): (AppendEvents | FinishRun)[] {
  const finishes = new Map(request.finishes.map((finish) => [toAttemptKey(finish), finish]));
  const batches = new Map<string, AppendEvents>();
  for (const { run_id, attempt, events } of request.events) {
    const batch = batches.get(toAttemptKey({ run_id, attempt }));
    if (batch === undefined)
      batches.set(toAttemptKey({ run_id, attempt }), {
        op: "append_events",
        run_id,
        attempt,
        events: [...events],
        runner,
      });
    else batch.events.push(...events);
  }
  const writes: (AppendEvents | FinishRun)[] = [];
  for (const [key, finish] of finishes) {
    const events = batches.get(key)?.events ?? [];
    const isComplete = events.length === 0 || (events.at(-1)?.n ?? 0) >= finish.last_n;
    if (!isComplete) continue;
    batches.delete(key);
    writes.push(toFinish(finish, events, runner, at));
  }
  return [...batches.values(), ...writes];
}

function toFinish(
  { run_id, attempt, last_n, outcome }: ReportRequest["finishes"][number],
  events: FinishRun["events"],
  runner: FinishRun["runner"] & object,
  at: string,
): FinishRun {
  const give_back = toGiveBack(outcome);
  const result = toResultEvent(outcome);
  // Never end with half of a surrogate pair.
  const summary = (result.error ?? result.result_text)
    ?.trim()
    .slice(0, 500)
    .replace(/[\ud800-\udbff]$/, "");
  return {
    op: "finish_run",
    run_id,
    attempt,
    at,
    events,
    last_n,
    runner,
    result,
    isolation: null,
    ...(summary === undefined || summary === "" ? {} : { summary }),
    ...(give_back === null ? {} : { give_back }),
    ...(outcome.status === "parked" ? { parked: outcome } : {}),
  };
}

function toGiveBack(outcome: Outcome): NonNullable<FinishRun["give_back"]> | null {
  if (outcome.status === "cancelled" && outcome.by === "shutdown") return "at_no_cost";
  return outcome.status === "failed" && outcome.reason === "runner_lost" ? "as_failure" : null;
}

function addResult(response: ReportResponse, { run_id, attempt }: Attempt, result: OpResult): void {
  if (result.ok || result.conflict === "gap") response.acked.push({ run_id, attempt, n: result.last_n });
  else response.fenced.push({ run_id, attempt });
}

function deduplicate(attempts: Attempt[]): Attempt[] {
  return [...new Map(attempts.map((attempt) => [toAttemptKey(attempt), attempt])).values()];
}

function toAttempt([run_id, attempt]: [string, number]): Attempt {
  return { run_id, attempt };
}

function toAttemptKey({ run_id, attempt }: Attempt): string {
  return `${run_id}.${attempt}`;
}
