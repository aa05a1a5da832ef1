/** A table that both engines have, with the same columns. */
export interface Table {
  name: string;
  /** The unique key and sort order, the same on both engines. */
  key: readonly string[];
  columns: readonly string[];
  /** Columns of unlimited length. A page with long values has fewer rows. */
  longColumns: readonly string[];
  /** The column that PostgreSQL numbers with a sequence. */
  sequenceColumn?: string;
}

/**
 * All tables except for contents and `store`. Of `store`, copyRecord copies only the id and the last restore. A test checks
 * that the list is complete.
 */
export const tables: readonly Table[] = [
  {
    name: "demands",
    key: ["demand_id"],
    columns: ["demand_id", "key", "body", "cap", "cap_agent", "cap_runner", "unmatched_since"],
    longColumns: ["body"],
    sequenceColumn: "demand_id",
  },
  { name: "demand_matches", key: ["runner_id", "demand_id"], columns: ["runner_id", "demand_id"], longColumns: [] },
  {
    name: "agent_revs",
    key: ["agent_rev_id"],
    columns: ["agent_rev_id", "hash", "max_attempts", "body", "type"],
    longColumns: ["body"],
    sequenceColumn: "agent_rev_id",
  },
  {
    name: "runs",
    key: ["run_no"],
    columns: [
      ["run_no", "run_id", "agent_name", "created_by", "mode", "status", "reason", "waiting_for", "blocked_by"],
      ["attended", "trigger_type", "demand_id", "priority", "attempt", "failures", "last_n", "last_seq", "runner_id"],
      ["progress", "exit_code", "isolation", "created_at", "claimed_at", "started_at", "finished_at", "session_id"],
      ["parent_run_id", "task_id", "step_id", "tool_call_id", "worktree_id", "repo_sha", "forked_from", "retry_of"],
      ["schedule", "project_dir", "usage", "error", "summary", "agent_rev_id", "claim_no", "given_back"],
      ["timeout_seconds", "executor_session_id", "in_place", "directory", "continued", "prefer_until", "demands_after"],
      ["parked_why", "parked_until", "asked", "resumed", "budgeted", "continues"],
      ["fork_at_turn", "model", "chained", "sealed"],
    ].flat(),
    longColumns: ["error", "usage"],
    sequenceColumn: "run_no",
  },
  {
    name: "run_bodies",
    key: ["run_no"],
    columns: ["run_no", "parameters", "prompt", "result_text", "result_data", "sealed"],
    longColumns: ["parameters", "prompt", "result_text", "result_data", "sealed"],
  },
  {
    name: "events",
    key: ["cursor"],
    columns: ["cursor", "run_no", "seq", "attempt", "n", "at", "body", "received_at"],
    longColumns: ["body"],
    sequenceColumn: "cursor",
  },
  {
    name: "audit_rows",
    key: ["no"],
    columns: ["no", "batch_no", "kind", "execution_id", "run_id", "attempt", "at", "body", "mac"],
    longColumns: ["body"],
  },
  {
    name: "audit_batches",
    key: ["batch_no"],
    columns: ["batch_no", "first_no", "count", "at", "mac"],
    longColumns: [],
  },
  {
    name: "audit_anchors",
    key: ["batch_no"],
    columns: ["batch_no", "last_no", "pruned_before", "at", "mac", "seal"],
    longColumns: [],
  },
  { name: "open_executions", key: ["start_no"], columns: ["start_no", "execution_id"], longColumns: [] },
  {
    name: "runners",
    key: ["runner_id"],
    columns: [
      ["runner_id", "key_hash", "registration_id", "owner", "name", "hostname", "project_dir", "executor_profile"],
      ["executor", "tags", "require_matching_tags", "slots", "status", "epoch", "lease_until", "claim_no"],
      ["registered_claim_no", "order_no", "registered_at", "last_seen_at", "only_agent", "place_id", "only_pinned"],
    ].flat(),
    longColumns: ["executor"],
  },
  {
    name: "runner_agents",
    key: ["runner_id", "name"],
    columns: ["runner_id", "name", "body"],
    longColumns: ["body"],
  },
  { name: "claims", key: ["runner_id", "claim_no"], columns: ["runner_id", "claim_no", "claim_id"], longColumns: [] },
  {
    name: "orders",
    key: ["runner_id", "no"],
    columns: ["runner_id", "no", "run_no", "attempt", "body"],
    longColumns: ["body"],
  },
  {
    name: "idempotency",
    key: ["subject", "key"],
    columns: ["subject", "key", "fingerprint", "run_id", "at"],
    longColumns: [],
  },
  { name: "agents", key: ["name"], columns: ["name", "owner", "updated_at", "body"], longColumns: ["body"] },
  {
    name: "sessions",
    key: ["session_id"],
    columns: [
      ["session_id", "executor_session_id", "agent_name", "created_by", "hostname", "executor_profile"],
      [
        "project_dir",
        "run_count",
        "created_at",
        "last_used_at",
        "forked_from",
        "fork_at_turn",
        "runner_id",
        "place_id",
        "runner_dir",
      ],
      ["granted_tools"],
    ].flat(),
    longColumns: ["granted_tools"],
  },
  {
    name: "session_states",
    key: ["session_id"],
    columns: [
      ["session_id", "run_id", "attempt", "n", "format", "portable", "runner_id", "place_id", "saved_at", "bytes"],
    ].flat(),
    longColumns: ["bytes"],
  },
  {
    name: "session_files",
    key: ["session_id", "path"],
    columns: ["session_id", "path", "type", "bytes"],
    longColumns: ["bytes"],
  },
  {
    name: "questions",
    key: ["question_no"],
    columns: [
      ["question_no", "run_no", "request_id", "attempt", "created_by", "tool", "input", "effect", "input_schema"],
      ["asked_at", "expires_at", "decision", "answered_by", "answered_at", "message", "edited_input", "remember"],
    ].flat(),
    longColumns: ["input", "input_schema", "message", "edited_input"],
    sequenceColumn: "question_no",
  },
  {
    name: "usage_days",
    key: ["agent_name", "day", "created_by"],
    columns: ["agent_name", "day", "created_by", "runs", "turns", "input_tokens", "output_tokens", "cost_usd"],
    longColumns: [],
  },
  {
    name: "usage_sessions",
    key: ["session_id", "day", "created_by"],
    columns: [
      ["session_id", "day", "created_by", "agent_name", "runs", "turns", "input_tokens", "output_tokens", "cost_usd"],
    ].flat(),
    longColumns: [],
  },
  {
    name: "run_counts",
    key: ["slot", "created_by", "status", "reason"],
    columns: ["slot", "created_by", "status", "reason", "runs"],
    longColumns: [],
  },
  { name: "usage_limits", key: ["provider", "place"], columns: ["provider", "place", "until"], longColumns: [] },
  {
    name: "schedules",
    key: ["schedule_id"],
    columns: [
      ["schedule_id", "agent_name", "name", "created_by", "source", "body", "enabled", "anchor", "due_at", "rev"],
      ["last_run_id", "session_id", "created_at", "updated_at"],
    ].flat(),
    longColumns: ["body"],
  },
  {
    name: "schedule_slots",
    key: ["schedule_id", "slot"],
    columns: ["schedule_id", "slot", "outcome", "why", "detail", "manual", "at", "run_id", "waits_for"],
    longColumns: ["detail"],
  },
  {
    name: "tokens",
    key: ["token_id"],
    columns: [
      ["token_id", "hash", "kind", "role", "subject", "label", "created_by", "created_at"],
      ["expires_at", "revoked_at", "used_at"],
    ].flat(),
    longColumns: [],
  },
  { name: "hooks", key: ["name"], columns: ["name", "created_by", "body", "secret"], longColumns: ["body"] },
  { name: "hook_keys", key: ["hook", "key"], columns: ["hook", "key", "until"], longColumns: [] },
  {
    name: "webhooks",
    key: ["webhook_no"],
    columns: [
      ["webhook_no", "name", "created_by", "everyones", "url", "events", "scope", "payload", "enabled", "secret"],
      ["created_at", "sealed"],
    ].flat(),
    longColumns: ["payload", "sealed"],
    sequenceColumn: "webhook_no",
  },
  { name: "run_webhooks", key: ["run_no", "name"], columns: ["run_no", "name"], longColumns: [] },
  {
    name: "deliveries",
    key: ["delivery_no"],
    columns: [
      ["delivery_no", "delivery_id", "webhook_no", "run_no", "event", "at", "body", "status", "attempts", "next_at"],
      ["give_up_at", "response_status", "response", "error", "settled_at"],
    ].flat(),
    longColumns: ["body", "response", "error"],
    sequenceColumn: "delivery_no",
  },
  {
    name: "chains",
    key: ["parent_run_no"],
    columns: ["parent_run_no", "child_run_id", "status", "agent_name", "parameters", "prompt", "fault", "depth"],
    longColumns: ["parameters", "prompt", "fault"],
  },
  {
    name: "uploads",
    key: ["run_no", "attempt", "sha256"],
    columns: ["run_no", "attempt", "sha256", "size"],
    longColumns: [],
  },
  {
    name: "files",
    key: ["run_no", "attempt", "path"],
    columns: ["run_no", "attempt", "path", "size", "sha256", "media_type"],
    longColumns: [],
  },
];

/** Selects a page in key order: after the given key, or the first page. */
export function buildPageStatement({ name, key, columns }: Table, hasCursor: boolean): string {
  const placeholders = key.map(() => "?").join(", ");
  const after = hasCursor ? ` where (${key.join(", ")}) > (${placeholders})` : "";
  return `select ${columns.join(", ")} from ${name}${after} order by ${key.join(", ")} limit ?`;
}

export function buildInsertStatement({ name, columns }: Table, rows: number): string {
  const row = `(${columns.map(() => "?").join(", ")})`;
  return `insert into ${name} (${columns.join(", ")}) values ${Array.from({ length: rows }, () => row).join(", ")}`;
}
