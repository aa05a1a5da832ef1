import type { RunnerRow } from "../../model/dispatch-ops.ts";
import { hasEnded, runStatuses, type RunStatus } from "../../model/states.ts";
import { readChainEnd } from "../audit/chain.ts";
import type { Engine } from "../engine.ts";
import { all, first, type Work } from "../query.ts";
import { fromColumn } from "../text.ts";

/** How many runs, runners and audit rows a record has. */
export interface RecordTotals {
  /** Number of runs for each status in which a run has not ended. */
  runs: { status: RunStatus; runs: number }[];
  oldest_pending: string | null;
  runners: { status: RunnerRow["status"]; runners: number; slots: number }[];
  /** Rows ever appended to the audit chain, including those that retention removed. */
  audit_rows: number;
}

/**
 * Counting a million pending runs takes a fifth of a second, so count in batches and let others read and write in between.
 */
const runsPerBatch = 5000;

// Repeats the condition of the partial index. Otherwise SQLite would not use it.
const countBatch = `
  select count(*) as runs, max(run_id) as last from (
    select run_id from runs where status = ? and status <> 'completed' and run_id > ? order by run_id limit ?) as portion`;
const selectOldest = `
  select min(run_id) as run_id from runs where status = 'pending' and status <> 'completed'`;
const countRunners = `
  select status, count(*) as runners, sum(slots) as slots from runners group by status`;

export async function readRecordTotals(engine: Engine): Promise<RecordTotals> {
  const runs: RecordTotals["runs"] = [];
  for (const status of runStatuses) if (!hasEnded(status)) runs.push({ status, runs: await countRuns(engine, status) });
  return { runs, ...(await engine.read(readSummary)) };
}

async function countRuns(engine: Engine, status: RunStatus): Promise<number> {
  for (let total = 0, after = ""; ;) {
    const { runs, last } = await engine.read(() => countAfter(status, after));
    total += runs;
    if (runs < runsPerBatch) return total;
    after = last;
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

function* countAfter(status: RunStatus, after: string): Work<{ runs: number; last: string }> {
  const [row] = yield first(countBatch, status, after, runsPerBatch);
  return { runs: Number(row?.["runs"]), last: String(row?.["last"]) };
}

function* readSummary(): Work<Omit<RecordTotals, "runs">> {
  const [oldest] = yield first(selectOldest);
  const run_id = oldest?.["run_id"];
  const runners = (yield all(countRunners)).map((row) => ({
    // Only these values are ever written.
    status: row["status"] as RunnerRow["status"],
    runners: Number(row["runners"]),
    slots: Number(row["slots"]),
  }));
  return {
    oldest_pending: typeof run_id === "string" ? fromColumn(run_id) : null,
    runners,
    audit_rows: (yield* readChainEnd()).last_no,
  };
}
