import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import type { RunnerRow } from "../../model/dispatch-ops.ts";
import { isAssigned, hasEnded, runStatuses, type RunStatus } from "../../model/states.ts";
import type { Stats, StatsReads } from "../../model/stats.ts";
import type { Engine } from "../engine.ts";
import { bucketSeconds } from "../moves/count-ends.ts";
import { statusIn } from "../moves/statuses.ts";
import { all, first, type Row, type SqlValue, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";
import { readRunners } from "./runners.ts";
import { toParkedReason, findPendingReasons } from "./wait-reasons.ts";

type Span = Parameters<StatsReads["stats"]>[0];

/** Runs grouped per batch. Others can read and write in between. */
const runsPerBatch = 5000;
const maxCosts = 1000;

const daySeconds = 86_400;

/** Reads few rows, however many runs there are: ends are counted when they happen, and only open runs are scanned. */
export async function readStats(engine: Engine, span: Span): Promise<Stats> {
  const owner = span.created_by === undefined ? null : toColumn(span.created_by);
  const ended = await engine.read(() => readEnds(span, owner));
  const cost = await engine.read(() => readCost(span, owner));
  const open = await groupOpenRuns(engine, owner);
  const runners = await engine.read(readRunners);
  const now = { pending: 0, running: 0, waiting: 0, parked: 0 };
  const waiting = new Map<string, number>();
  for (const group of open) {
    const { status, runs } = group;
    if (status === "pending" || status === "waiting" || status === "parked") {
      now[status] += runs;
      const reason = await engine.read(() => findReason(group, runners));
      waiting.set(reason, (waiting.get(reason) ?? 0) + runs);
    } else if (isAssigned(status)) now.running += runs;
  }
  return { ...ended, now, waiting: sortByCount(waiting), cost };
}

const selectEnds = (ownerCondition: string): string => `
  select slot / ?1 as bucket, status, reason, sum(runs) as runs from run_counts
  where slot >= ?2 and slot < ?3${ownerCondition} group by slot / ?1, status, reason`;

function* readEnds({ since, until }: Span, owner: string | null): Work<Omit<Stats, "now" | "waiting" | "cost">> {
  const [from, to] = [Date.parse(since) / 1000, Date.parse(until) / 1000];
  const bucket_seconds = chooseBucketSeconds(to - from);
  const bucketsPerPoint = bucket_seconds / bucketSeconds;
  const firstBucket = Math.floor(from / bucket_seconds);
  const after = Math.max(firstBucket + 1, Math.ceil(to / bucket_seconds));
  const values = [bucketsPerPoint, firstBucket * bucketsPerPoint, Math.ceil(to / bucketSeconds)];
  const rows = yield owner === null
    ? all(selectEnds(""), ...values)
    : all(selectEnds(" and created_by = ?4"), ...values, owner);
  const throughput = Array.from({ length: after - firstBucket }, (_, index) => ({
    at: toIso((firstBucket + index) * bucket_seconds),
    completed: 0,
    failed: 0,
    cancelled: 0,
  }));
  const failures = new Map<string, number>();
  let runs_finished = 0;
  for (const { bucket, status, reason, runs: count } of rows) {
    const runs = Number(count);
    runs_finished += runs;
    const point = throughput[Number(bucket) - firstBucket];
    // Only ended runs are counted.
    if (point !== undefined) point[status as "completed" | "failed" | "cancelled"] += runs;
    if (status === "failed") failures.set(String(reason), (failures.get(String(reason)) ?? 0) + runs);
  }
  return {
    since: toIso(firstBucket * bucket_seconds),
    until,
    bucket_seconds,
    throughput,
    failures: sortByCount(failures),
    runs_finished,
  };
}

function chooseBucketSeconds(seconds: number): number {
  if (seconds <= daySeconds) return bucketSeconds;
  return seconds <= 7 * daySeconds ? 3600 : daySeconds;
}

const selectCosts = (ownerCondition: string): string => `
  select day, agent_name, sum(runs) as runs, sum(cost_usd) as cost_usd, sum(input_tokens) as input_tokens,
    sum(output_tokens) as output_tokens
  from usage_days where day >= ?1 and day <= ?2${ownerCondition} group by day, agent_name order by day desc, agent_name limit ?3`;

function* readCost({ since, until }: Span, owner: string | null): Work<Stats["cost"]> {
  const days = [toIso(Date.parse(since) / 1000).slice(0, 10), toIso(Date.parse(until) / 1000).slice(0, 10)];
  const rows = yield owner === null
    ? all(selectCosts(""), ...days, maxCosts)
    : all(selectCosts(" and created_by = ?4"), ...days, maxCosts, owner);
  return rows.map((row) => ({
    day: String(row["day"]),
    agent_name: fromColumn(String(row["agent_name"])),
    runs: Number(row["runs"]),
    cost_usd: row["cost_usd"] === null ? null : Number(row["cost_usd"]),
    input_tokens: Number(row["input_tokens"]),
    output_tokens: Number(row["output_tokens"]),
  }));
}

/** Runs with the same status that wait for the same reason. */
interface Group {
  status: RunStatus;
  row: Row;
  runs: number;
}

const groupColumns = "demand_id, agent_name, blocked_by, parked_why, prefers";
// Repeats the condition of the partial index. Otherwise SQLite would not use it.
const selectGroups = `
  select ${groupColumns}, sum(own) as own, count(*) as scanned, max(run_id) as last from (
    select run_id, demand_id, agent_name, blocked_by, parked_why, prefer_until is not null as prefers,
      case when created_by = ?4 or ?4 is null then 1 else 0 end as own
    from runs where status = ?1 and status <> 'completed' and run_id > ?2 order by run_id limit ?3) as found
  group by ${groupColumns}`;

async function groupOpenRuns(engine: Engine, owner: string | null): Promise<Group[]> {
  const groups = new Map<string, Group>();
  for (const status of runStatuses) {
    if (hasEnded(status)) continue;
    for (let after = "", scanned = runsPerBatch; scanned === runsPerBatch; await yieldToEventLoop()) {
      const rows = await engine.read(() => readRows(selectGroups, status, after, runsPerBatch, owner));
      scanned = 0;
      for (const row of rows) {
        scanned += Number(row["scanned"]);
        if (String(row["last"]) > after) after = String(row["last"]);
        const key = JSON.stringify([
          status,
          row["demand_id"],
          row["agent_name"],
          row["blocked_by"],
          row["parked_why"],
          row["prefers"],
        ]);
        const group = groups.get(key) ?? { status, row, runs: 0 };
        group.runs += Number(row["own"]);
        groups.set(key, group);
      }
    }
  }
  return [...groups.values()].filter(({ runs }) => runs > 0);
}

const selectDemand = `
  select body, cap, case when cap is null then 0 else (
    select count(*) from runs where agent_name = ?2 and agent_rev_id is not null and ${statusIn("busy")}
      and (demands.cap_runner is null or runner_id = demands.cap_runner)) end as busy
  from demands where demand_id = ?1`;

function* findReason({ status, row }: Group, runners: readonly RunnerRow[]): Work<string> {
  if (status === "waiting") return "approval";
  if (status === "parked") return toParkedReason(row["parked_why"]);
  const { demand_id = null, agent_name = null, blocked_by = null } = row;
  const [demand] = yield first(selectDemand, demand_id, agent_name);
  if (demand === undefined) return "turn"; // Retention removed the demand with its last run.
  const prefer_until = row["prefers"] === 1 ? 0 : null;
  const facts = { ...demand, agent_name, blocked_by, prefer_until, mode: "start", directory: anyDirectory, host: null };
  return findPendingReasons(facts, runners)[0]?.demand ?? "turn";
}

/** A placeholder: only the kind of reason matters here, not the directory. */
const anyDirectory = JSON.stringify(["", ""]);

function sortByCount(counts: ReadonlyMap<string, number>): { reason: string; count: number }[] {
  return [...counts]
    .map(([reason, count]) => ({ reason, count }))
    .sort((a, b) => b.count - a.count || (a.reason < b.reason ? -1 : 1));
}

function toIso(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}

function* readRows(text: string, ...values: SqlValue[]): Work<Row[]> {
  return yield all(text, ...values);
}
