import type { AgentResult, DeleteAgent, PutAgent } from "../../model/agent-ops.ts";
import { first, write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";

const selectAgent = `select 1 from agents where name = ?`;
const upsert = `
  insert into agents (name, owner, updated_at, body) values (?, ?, ?, ?)
  on conflict (name) do update set updated_at = excluded.updated_at, body = excluded.body`;
const deleteRow = `delete from agents where name = ? returning name`;

/** An update keeps the original owner. */
export function* putAgent(tx: Transaction, { agent, by }: PutAgent): Work<AgentResult> {
  const [existing] = yield first(selectAgent, toColumn(agent.name));
  yield write(upsert, toColumn(agent.name), toColumn(by), tx.now.toISOString(), JSON.stringify(agent));
  return { ok: true, op: "put_agent", created: existing === undefined };
}

export function* deleteAgent({ name }: DeleteAgent): Work<AgentResult> {
  const [deleted] = yield first(deleteRow, toColumn(name));
  return deleted === undefined ? { ok: false, conflict: "not_found" } : { ok: true, op: "delete_agent" };
}
