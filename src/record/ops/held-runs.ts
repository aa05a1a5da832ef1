import type { Transaction } from "../transaction.ts";
import { fromColumn } from "../text.ts";
import { selectStored, type StoredRun } from "./run-state.ts";

/** Word for word the condition of the partial index, which is how SQLite knows that it may use it. */
const assigned = `agent_rev_id is not null and status in ('claimed', 'running', 'waiting', 'stopping')`;
const selectHeld = `${selectStored} where runner_id = ? and ${assigned} order by claim_no limit ?`;
const selectOfClaim = `${selectStored} where runner_id = ? and claim_no = ? and ${assigned}`;
const selectUpTo = `${selectStored} where runner_id = ? and claim_no <= ? and ${assigned}`;
const anyHeld = `select 1 from runs where runner_id = ? and ${assigned} limit 1`;

/** What a runner was handed and has not brought to an end. `runner` as stored. */
export function heldRuns(tx: Transaction, runner: string, limit = -1): StoredRun[] {
  return tx.sql(selectHeld).all(runner, limit).map(storedRun);
}

export function runsOfClaim(tx: Transaction, runner: string, claim_no: number): StoredRun[] {
  return tx.sql(selectOfClaim).all(runner, claim_no).map(storedRun);
}

export function runsUpToClaim(tx: Transaction, runner: string, claim_no: number): StoredRun[] {
  return tx.sql(selectUpTo).all(runner, claim_no).map(storedRun);
}

export function holdsAny(tx: Transaction, runner: string): boolean {
  return tx.sql(anyHeld).get(runner) !== undefined;
}

/** Of a row that selectStored selects. */
export function storedRun(row: object): StoredRun {
  // The statements select exactly these columns.
  const run = row as StoredRun;
  return { ...run, run_id: fromColumn(run.run_id) };
}
