import type { Execution, Page } from "../../model/store.ts";
import { all, first, type Row, type SqlValue, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";

export interface ExecutionFilter {
  run_id?: string;
  open?: boolean;
}

const pairs = `
  select started.run_id, started.attempt, started.body as start_body,
    (select ended.body from audit_rows ended
     where ended.execution_id = started.execution_id and ended.kind = 'end'
     order by ended.no desc limit 1) as end_body
  from audit_rows started`;
const one = `${pairs} where started.execution_id = ? and started.kind = 'start'`;
const startNo = `
  select no from audit_rows where execution_id = ? and kind = 'start'`;

export function* readExecution(execution_id: string): Work<Execution | null> {
  const [row] = yield first(one, toColumn(execution_id));
  return row === undefined ? null : executionFromRow(row);
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
    const [start] = yield first(startNo, toColumn(page.before));
    values.push(start?.["no"] ?? 0);
  }
  const text = `${pairs} where ${conditions.join(" and ")} order by started.no desc limit ?`;
  return (yield all(text, ...values, page.limit)).map(executionFromRow);
}

export function executionFromRow(row: Row): Execution {
  return {
    run_id: fromColumn(String(row["run_id"])),
    attempt: Number(row["attempt"]),
    // Both were written from the model's types by storeEvent.
    start: JSON.parse(String(row["start_body"])) as Execution["start"],
    end: typeof row["end_body"] === "string" ? (JSON.parse(row["end_body"]) as Execution["end"]) : null,
  };
}
