import type { Order } from "../../model/runner-port.ts";
import { all, first, write, type Work } from "../query.ts";
import { fromColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { statusIn } from "../moves/statuses.ts";
import type { StoredRun } from "../moves/stored-run.ts";

/** The content of an order, without its number and the attempt it is for. */
export type OrderBody = Order extends infer O
  ? O extends Order
    ? Omit<O, "no" | "run_id" | "attempt">
    : never
  : never;

const nextNo = `
  update runners set order_no = order_no + 1 where runner_id = ? returning order_no`;
const insertOrder = `
  insert into orders (runner_id, no, run_no, attempt, body) values (?, ?, ?, ?, ?)`;
const deleteAcked = `
  delete from orders where runner_id = ? and no <= ?`;
// Excludes orders to attempts that have ended or were replaced.
const selectOpen = `
  select orders.no, runs.run_id, orders.attempt, orders.body from orders join runs using (run_no)
  where orders.runner_id = ? and runs.runner_id = orders.runner_id and runs.attempt = orders.attempt
    and ${statusIn("assigned", "runs.status")}
  order by orders.no`;

/** Sends an order to the runner that holds the run, for this attempt only. Returns false if no runner holds it. */
export function* sendOrder(tx: Transaction, run: StoredRun, body: OrderBody): Work<boolean> {
  if (run.runner_id === null) return false;
  const [numbered] = yield first(nextNo, run.runner_id);
  if (numbered === undefined) return false;
  yield write(insertOrder, run.runner_id, Number(numbered["order_no"]), run.run_no, run.attempt, JSON.stringify(body));
  tx.changes.runnersWithOrders.add(fromColumn(run.runner_id));
  return true;
}

export function* ackOrders(runner: string, upTo: number): Work<void> {
  if (upTo > 0) yield write(deleteAcked, runner, upTo);
}

export function* readOpenOrders(runner: string): Work<Order[]> {
  const rows = yield all(selectOpen, runner);
  return rows.map((row) => ({
    no: Number(row["no"]),
    run_id: fromColumn(String(row["run_id"])),
    attempt: Number(row["attempt"]),
    // sendOrder wrote this value from an OrderBody.
    ...(JSON.parse(String(row["body"])) as OrderBody),
  }));
}
