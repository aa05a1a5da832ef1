import type { AgentResult, DeleteAgent, PutAgent } from "../../model/agent-ops.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";

const known = `select 1 from agents where name = ?`;
const upsert = `
  insert into agents (name, owner, updated_at, body) values (?, ?, ?, ?)
  on conflict (name) do update set updated_at = excluded.updated_at, body = excluded.body`;
const remove = `delete from agents where name = ? returning name`;

/** Its owner stays who made it first. */
export function putAgent(tx: Transaction, { agent, by }: PutAgent): AgentResult {
  const created = tx.sql(known).get(toColumn(agent.name)) === undefined;
  tx.sql(upsert).run(toColumn(agent.name), toColumn(by), tx.now.toISOString(), JSON.stringify(agent));
  return { ok: true, op: "put_agent", created };
}

export function deleteAgent(tx: Transaction, { name }: DeleteAgent): AgentResult {
  const found = tx.sql(remove).get(toColumn(name));
  return found === undefined ? { ok: false, conflict: "not_found" } : { ok: true, op: "delete_agent" };
}
