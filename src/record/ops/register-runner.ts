import type { DispatchResult, RegisterRunner } from "../../model/dispatch-ops.ts";
import { write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { matchRunner } from "./demands.ts";
import { loseRunner } from "./lose-runner.ts";
import { releaseStranded } from "./place-run.ts";
import { findRunner, type StoredRunner } from "./runner-row.ts";

const columns = [
  "runner_id",
  "key_hash",
  "registration_id",
  "owner",
  "name",
  "hostname",
  "project_dir",
  "executor_profile",
  "executor",
  "tags",
  "require_matching_tags",
  "slots",
  "status",
  "epoch",
  "lease_until",
  "claim_no",
  "registered_claim_no",
  "order_no",
  "registered_at",
  "last_seen_at",
  "only_agent",
  "place_id",
  "only_pinned",
];
const upsertRunner = `
  insert into runners (${columns.join(", ")}) values (${columns.map(() => "?").join(", ")})
  on conflict (runner_id) do update set ${columns
    .slice(1)
    .map((name) => `${name} = excluded.${name}`)
    .join(", ")}`;
const deleteAgents = `delete from runner_agents where runner_id = ?`;
const insertAgent = `
  insert into runner_agents (runner_id, name, body) values (?, ?, ?)
  on conflict (runner_id, name) do update set body = excluded.body`;

export function* registerRunner(tx: Transaction, op: RegisterRunner): Work<DispatchResult> {
  const existing = yield* findRunner(op.runner_id);
  if (existing !== null && !canTakeOver(existing, op)) return { ok: false, conflict: "duplicate_runner" };
  const isSameProcess =
    existing !== null && existing.row["key_hash"] === toColumn(op.key_hash) && existing.status !== "lost";
  if (isSameProcess && isRepeated(existing, op)) return { ok: true, op: "register_runner", epoch: existing.epoch };
  // A new process takes over this runner id. The runs of the old one are lost.
  if (existing !== null && !isSameProcess) yield* loseRunner(tx, existing);

  const now = tx.now.getTime();
  // Derived from the time, so that it also increases if the runner's row was deleted in between.
  const epoch = Math.max(now, (existing?.epoch ?? 0) + 1);
  const { registration } = op;
  yield write(
    upsertRunner,
    toColumn(op.runner_id),
    toColumn(op.key_hash),
    toColumn(op.registration.registration_id ?? null),
    toColumn(op.owner),
    toColumn(registration.name ?? null),
    toColumn(registration.hostname),
    toColumn(registration.project_dir),
    toColumn(registration.executor_profile),
    JSON.stringify(registration.executor),
    JSON.stringify(registration.tags),
    registration.require_matching_tags ? 1 : 0,
    registration.slots,
    isSameProcess && existing.status === "draining" ? "draining" : "online",
    epoch,
    now + op.lease_ms,
    existing?.claim_no ?? 0,
    existing?.claim_no ?? 0,
    Number(existing?.row["order_no"] ?? 0),
    now,
    now,
    toColumn(registration.only_agent ?? null),
    toColumn(registration.place_id ?? null),
    registration.only_pinned ? 1 : 0,
  );
  const runner = toColumn(op.runner_id);
  yield write(deleteAgents, runner);
  for (const agent of registration.agents)
    yield write(insertAgent, runner, toColumn(agent.name), JSON.stringify(agent));
  const stored = yield* findRunner(op.runner_id);
  yield* matchRunner(tx, stored?.row ?? {});
  if (!registration.only_pinned) yield* releaseStranded(tx);
  return { ok: true, op: "register_runner", epoch };
}

/** Reports whether the same request arrived twice. A second epoch would fence the runner that received the first. */
function isRepeated(existing: StoredRunner, { registration: { registration_id } }: RegisterRunner): boolean {
  return registration_id !== undefined && existing.row["registration_id"] === toColumn(registration_id);
}

/** The same runner (same key) registering again, or another process of the same owner once the old one is lost. */
function canTakeOver(existing: StoredRunner, op: RegisterRunner): boolean {
  if (existing.row["owner"] !== toColumn(op.owner)) return false;
  if (existing.row["key_hash"] === toColumn(op.key_hash)) return true;
  return existing.status === "lost";
}
