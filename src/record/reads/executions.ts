import type { Execution, Page } from "../../model/store.ts";
import { all, first, type Row, type SqlValue, type Work } from "../query.ts";
import { fromColumn, textOrNull, toColumn } from "../text.ts";
import { countFittingRows } from "./events.ts";
import type { SealedRunFields } from "../ops/store-events.ts";

export interface ExecutionFilter {
  run_id?: string;
  open?: boolean;
}

/**
 * Selects the first end of `started` that its own attempt reported. Earlier versions also accepted ends from other
 * attempts.
 */
const selectEnd = (column: string): string => `(
    select ${column} from audit_rows ended join audit_batches end_batch on end_batch.batch_no = ended.batch_no
    where ended.execution_id = started.execution_id and ended.kind = 'end'
      and ended.run_id = started.run_id and ended.attempt = started.attempt
    order by ended.no limit 1)`;
/** The columns that `toExecution` needs, for the row `started`. */
export const executionColumns = `
    started.run_id, started.attempt, started.body as start_body,
    (select start_batch.at from audit_batches start_batch where start_batch.batch_no = started.batch_no) as received_at,
    ${selectEnd("ended.body")} as end_body, ${selectEnd("end_batch.at")} as end_received_at`;
const selectExecutions = `
  select ${executionColumns} from audit_rows started`;
const selectSizes = `
  select octet_length(started.body) + coalesce(${selectEnd("octet_length(ended.body)")}, 0) as size from audit_rows started`;
const selectExecution = `${selectExecutions} where started.execution_id = ? and started.kind = 'start' order by started.no limit 1`;
const selectStartNo = `
  select no from audit_rows where execution_id = ? and kind = 'start' order by no limit 1`;

export function* readExecution(execution_id: string): Work<Execution | null> {
  const [row] = yield first(selectExecution, toColumn(execution_id));
  return row === undefined ? null : toExecution(row);
}

export function* readExecutions(filter: ExecutionFilter, page: Page): Work<Execution[]> {
  const conditions = ["started.kind = 'start'"];
  const values: SqlValue[] = [];
  if (filter.run_id !== undefined) {
    conditions.push("started.run_id = ?");
    values.push(toColumn(filter.run_id));
  }
  if (filter.open === true) conditions.push("started.no in (select start_no from open_executions)");
  if (filter.open === false) conditions.push("started.no not in (select start_no from open_executions)");
  if (page.before !== undefined) {
    conditions.push("started.no < ?");
    const [start] = yield first(selectStartNo, toColumn(page.before));
    values.push(start?.["no"] ?? 0);
  }
  const pageClause = `where ${conditions.join(" and ")} order by started.no desc limit ?`;
  const limit =
    page.limitBytes === true
      ? countFittingRows(yield all(`${selectSizes} ${pageClause}`, ...values, page.limit))
      : page.limit;
  return (yield all(`${selectExecutions} ${pageClause}`, ...values, limit)).map(toExecution);
}

export function toExecution(row: Row): Execution {
  // storeEvent wrote both values from the model's types.
  const { run: _run, ...start } = parseStartBody(row);
  return {
    run_id: fromColumn(String(row["run_id"])),
    attempt: Number(row["attempt"]),
    received_at: String(row["received_at"]),
    end_received_at: textOrNull(row["end_received_at"]),
    start,
    end: typeof row["end_body"] === "string" ? (JSON.parse(row["end_body"]) as Execution["end"]) : null,
  };
}

/** The body of the row `started`: the execution's start and the fields of its run that the audit chain covers. */
export function parseStartBody(row: Row): Execution["start"] & { run?: SealedRunFields } {
  return JSON.parse(String(row["start_body"])) as Execution["start"];
}
