import type { RunnerRow, RunnerIdentity } from "../../model/dispatch-ops.ts";
import type { RunnerFacts } from "../matching.ts";
import { first, type Row, type Work } from "../query.ts";
import { fromColumn, textOrNull, toColumn } from "../text.ts";

/** A runner's row, with the columns that operations use most already parsed. */
export interface StoredRunner {
  /** The runner's id, encoded as in the column. */
  storedId: string;
  status: RunnerRow["status"];
  epoch: number;
  claim_no: number;
  registered_claim_no: number;
  row: Row;
}

const selectRunner = `select * from runners where runner_id = ?`;

export function* findRunner(runner_id: string): Work<StoredRunner | null> {
  const [row] = yield first(selectRunner, toColumn(runner_id));
  return row === undefined ? null : toStoredRunner(row);
}

function toStoredRunner(row: Row): StoredRunner {
  return {
    storedId: String(row["runner_id"]),
    // Only these values are ever written.
    status: row["status"] as RunnerRow["status"],
    epoch: Number(row["epoch"]),
    claim_no: Number(row["claim_no"]),
    registered_claim_no: Number(row["registered_claim_no"]),
    row,
  };
}

type CheckedRunner = StoredRunner | "unknown_runner" | "old_epoch";

/**
 * Returns the calling runner, or the conflict if it is refused. A lost runner has to register again, because it no longer
 * holds its runs.
 */
export function* findCallingRunner(caller: RunnerIdentity): Work<CheckedRunner> {
  const [row] = yield first(selectRunner, toColumn(caller.runner_id));
  return checkRunner(row, caller);
}

/** Like `findCallingRunner`, for a row from a statement that selects more columns. */
export function checkRunner(row: Row | undefined, { epoch, owner }: RunnerIdentity): CheckedRunner {
  const runner = row === undefined ? null : toStoredRunner(row);
  if (runner === null || (owner !== undefined && runner.row["owner"] !== toColumn(owner))) return "unknown_runner";
  if (runner.epoch !== epoch) return "old_epoch";
  return runner.status === "lost" ? "unknown_runner" : runner;
}

export function toRunnerFacts(row: Row): RunnerFacts {
  return {
    runner_id: getText(row, "runner_id"),
    hostname: getText(row, "hostname"),
    place_id: textOrNull(row["place_id"]),
    project_dir: getText(row, "project_dir"),
    executor_profile: getText(row, "executor_profile"),
    executor_type: parseExecutor(row).type,
    // register_runner wrote this value from a registration.
    tags: JSON.parse(String(row["tags"])) as string[],
    require_matching_tags: row["require_matching_tags"] === 1,
    only_pinned: row["only_pinned"] === 1,
  };
}

export function parseExecutor(row: Row): RunnerRow["executor"] {
  // register_runner wrote this value from a registration.
  return JSON.parse(String(row["executor"])) as RunnerRow["executor"];
}

export function getText(row: Row, name: string): string {
  return fromColumn(String(row[name]));
}
