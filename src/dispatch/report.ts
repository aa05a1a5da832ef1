import type { Outcome } from "../model/executor.ts";
import { toResultEvent } from "../model/outcome.ts";
import type { ReportAnswer, ReportRequest } from "../model/runner-port.ts";
import type { AppendEvents, FinishRun, OpResult, Store } from "../model/store.ts";
import { boundReport } from "./bound-report.ts";
import { portConflict } from "./poll.ts";

export interface ReportDeps {
  store: Pick<Store, "apply">;
  now: () => Date;
  leaseMs: number;
  /** Receives live text of attempts that this runner holds. It is never stored. */
  onPartials: (partials: ReportRequest["partials"]) => void;
}

type Attempt = { run_id: string; attempt: number };

/** Stores one report in one transaction: first its events and finishes, then the heartbeat. */
export async function report(given: ReportRequest, owner: string | undefined, deps: ReportDeps): Promise<ReportAnswer> {
  const request = boundReport(given);
  const speaker = { runner_id: request.runner_id, epoch: request.epoch, ...(owner === undefined ? {} : { owner }) };
  const writes = writesOf(request, speaker, deps.now().toISOString());
  const results = await deps.store.apply([
    ...writes,
    {
      op: "heartbeat",
      ...speaker,
      held: request.held,
      // Runs that finish in this report are no longer held afterwards and must not be reported as fenced.
      finishing: request.finishes.map(({ run_id, attempt }) => [run_id, attempt] as const),
      as_of_claim: request.as_of_claim,
      lease_ms: deps.leaseMs,
    } as const,
  ]);
  const beat = results.at(-1);
  if (beat === undefined || !("op" in beat) || beat.op !== "heartbeat") {
    throw portConflict(
      beat !== undefined && "conflict" in beat && beat.conflict === "old_epoch" ? "old_epoch" : "unknown_runner",
    );
  }
  const answer: ReportAnswer = { acked: [], fenced: beat.fenced.map(toAttempt), abandon: beat.abandon.map(toAttempt) };
  // One result per write, in order, followed by the heartbeat's.
  writes.forEach((write, index) => judge(answer, write, results[index] as OpResult));
  const lost = new Set([...answer.fenced, ...answer.abandon].map(keyOf));
  const held = new Set(
    request.held
      .map(toAttempt)
      .map(keyOf)
      .filter((key) => !lost.has(key)),
  );
  const live = request.partials.filter((partial) => held.has(keyOf(partial)));
  if (live.length > 0) deps.onPartials(live);
  const spent = beat.over_budget?.map(toAttempt);
  return { ...answer, fenced: unique(answer.fenced), ...(spent === undefined ? {} : { over_budget: spent }) };
}

function writesOf(
  request: ReportRequest,
  runner: FinishRun["runner"] & object,
  at: string,
): (AppendEvents | FinishRun)[] {
  const finishes = new Map(request.finishes.map((finish) => [keyOf(finish), finish]));
  const batches = new Map<string, AppendEvents>();
  for (const { run_id, attempt, events } of request.events) {
    const batch = batches.get(keyOf({ run_id, attempt }));
    if (batch === undefined)
      batches.set(keyOf({ run_id, attempt }), { op: "append_events", run_id, attempt, events: [...events], runner });
    else batch.events.push(...events);
  }
  const writes: (AppendEvents | FinishRun)[] = [];
  for (const [key, finish] of finishes) {
    const events = batches.get(key)?.events ?? [];
    const whole = events.length === 0 || (events.at(-1)?.n ?? 0) >= finish.last_n;
    if (!whole) continue;
    batches.delete(key);
    writes.push(finishOf(finish, events, runner, at));
  }
  return [...batches.values(), ...writes];
}

function finishOf(
  { run_id, attempt, last_n, outcome }: ReportRequest["finishes"][number],
  events: FinishRun["events"],
  runner: FinishRun["runner"] & object,
  at: string,
): FinishRun {
  const give_back = giveBackOf(outcome);
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

function giveBackOf(outcome: Outcome): NonNullable<FinishRun["give_back"]> | null {
  if (outcome.status === "cancelled" && outcome.by === "shutdown") return "at_no_cost";
  return outcome.status === "failed" && outcome.reason === "runner_lost" ? "as_failure" : null;
}

function judge(answer: ReportAnswer, { run_id, attempt }: Attempt, result: OpResult): void {
  if (result.ok || result.conflict === "gap") answer.acked.push({ run_id, attempt, n: result.last_n });
  else answer.fenced.push({ run_id, attempt });
}

function unique(attempts: Attempt[]): Attempt[] {
  return [...new Map(attempts.map((one) => [keyOf(one), one])).values()];
}

function toAttempt([run_id, attempt]: [string, number]): Attempt {
  return { run_id, attempt };
}

function keyOf({ run_id, attempt }: Attempt): string {
  return `${run_id}.${attempt}`;
}
