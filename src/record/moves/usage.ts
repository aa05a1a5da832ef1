import type { NumberedEvent, Usage } from "../../model/event.ts";
import { write, type Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import type { StoredRun } from "./stored-run.ts";

const addColumns = (table: string): string => `
    runs = ${table}.runs + excluded.runs, turns = ${table}.turns + excluded.turns,
    input_tokens = ${table}.input_tokens + excluded.input_tokens,
    output_tokens = ${table}.output_tokens + excluded.output_tokens,
    cost_usd = case when excluded.cost_usd is null then ${table}.cost_usd
      else coalesce(${table}.cost_usd, 0) + excluded.cost_usd end`;
const addToDay = `
  insert into usage_days (agent_name, day, created_by, runs, turns, input_tokens, output_tokens, cost_usd)
  select agent_name, ?, created_by, ?, ?, ?, ?, ? from runs where run_no = ?
  on conflict (agent_name, day, created_by) do update set ${addColumns("usage_days")}`;
const addToSession = `
  insert into usage_sessions (session_id, agent_name, day, created_by, runs, turns, input_tokens, output_tokens, cost_usd)
  select session_id, agent_name, ?, created_by, ?, ?, ?, ?, ? from runs where run_no = ? and session_id is not null
  on conflict (session_id, day, created_by) do update set ${addColumns("usage_sessions")}`;

/** The UTC day, such as 2026-01-31. */
export function toDay(now: Date): string {
  return now.toISOString().slice(0, 10);
}

/** Adds the usage of turns to the run, its agent's day and its session. A run counts on the day of its first turn. */
export function* addUsage(
  tx: Transaction,
  run: StoredRun,
  events: readonly NumberedEvent[],
): Work<Record<string, string>> {
  const turns = events.flatMap(({ event }) => (event.type === "usage" ? [event.usage] : []));
  if (turns.length === 0) return {};
  const total = turns.reduce(sumUsage, noUsage);
  // A previous call of this function wrote it.
  const previous = run.usage === null ? null : (JSON.parse(run.usage) as Usage);
  if (run.agent_rev_id !== null) {
    const { input_tokens, output_tokens, cost_usd } = total;
    const counts = [previous === null ? 1 : 0, turns.length, input_tokens, output_tokens, cost_usd];
    yield write(addToDay, toDay(tx.now), ...counts, run.run_no);
    if (run.session_id !== null) yield write(addToSession, toDay(tx.now), ...counts, run.run_no);
  }
  run.usage = JSON.stringify(sumUsage(previous ?? noUsage, total));
  return { usage: run.usage };
}

const noUsage: Usage = { input_tokens: 0, output_tokens: 0, cost_usd: null };

function sumUsage(a: Usage, b: Usage): Usage {
  return {
    input_tokens: a.input_tokens + clampCount(b.input_tokens),
    output_tokens: a.output_tokens + clampCount(b.output_tokens),
    cost_usd: b.cost_usd === null ? a.cost_usd : (a.cost_usd ?? 0) + clampCount(b.cost_usd),
  };
}

/** Far more than anyone uses, and small enough that both engines can store sums of it. */
const maxCount = 1e15;

/** Ignores negative and invalid values, so that no runner can reduce recorded usage. */
function clampCount(value: number): number {
  return Number.isFinite(value) && value > 0 ? Math.min(value, maxCount) : 0;
}
