import type { Execution, Page } from "../../model/store.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Row, SqlValue } from "../sqlite/driver.ts";
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

export function readExecution(connection: Connection, execution_id: string): Execution | null {
  const row = connection.sql(one).get(toColumn(execution_id));
  return row === undefined ? null : executionFromRow(row);
}

export function readExecutions(connection: Connection, filter: ExecutionFilter, page: Page): Execution[] {
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
    values.push(connection.sql(startNo).get(toColumn(page.before))?.["no"] ?? 0);
  }
  return connection
    .sql(`${pairs} where ${conditions.join(" and ")} order by started.no desc limit ?`)
    .all(...values, page.limit)
    .map(executionFromRow);
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
