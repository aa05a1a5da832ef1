/**
 * runs: narrow rows that change often; long values are in run_bodies. Other tables refer to `run_no`, a small integer
 * instead of a 36-character id in each event and its index. Lists are ordered by `run_id`, a uuidv7 and therefore in order
 * of creation. Each index of `runs` ends with `run_id`, so new rows are added at the end of their group. Rarely used ids
 * are in partial indexes.
 *
 * events: `cursor` is the commit order over all runs. There is no index on (run_no, attempt, n): `n` has no gaps, so
 * runs.last_n already says which events of the current attempt are stored. Reports of other attempts are refused.
 *
 * audit_*: see ../../audit/chain.ts. open_executions is an index of starts without an end. It is derived from audit_rows
 * and is not evidence itself.
 */
export const first = `
create table demands (
  demand_id integer primary key,
  body text not null unique
);
insert into demands values (1, '{}');

create table runs (
  run_no integer primary key,
  run_id text not null unique,
  agent_name text not null,
  created_by text not null,
  mode text not null,
  status text not null,
  reason text,
  waiting_for text,
  blocked_by text,
  attended integer not null,
  trigger_type text not null,
  demand_id integer not null,
  priority integer not null,
  attempt integer not null,
  failures integer not null,
  last_n integer not null,
  last_seq integer not null,
  runner_id text,
  progress real,
  exit_code integer,
  isolation text,
  created_at text not null,
  claimed_at text,
  started_at text,
  finished_at text,
  session_id text,
  parent_run_id text,
  task_id text,
  step_id text,
  tool_call_id text,
  worktree_id text,
  repo_sha text,
  forked_from text,
  retry_of text,
  schedule text,
  project_dir text,
  usage text,
  error text,
  summary text
);
create index runs_by_agent on runs (agent_name, run_id);
create index runs_by_status on runs (status, run_id) where status <> 'completed';
create index runs_to_claim on runs (demand_id, priority desc, run_id) where status = 'pending' and blocked_by is null;
create index runs_by_session on runs (session_id, run_id) where session_id is not null;
create index runs_by_parent on runs (parent_run_id, run_id) where parent_run_id is not null;
create index runs_by_task on runs (task_id, run_id) where task_id is not null;
create index runs_by_tool_call on runs (tool_call_id, run_id) where tool_call_id is not null;

create table run_bodies (
  run_no integer primary key,
  parameters text not null,
  prompt text,
  result_text text,
  result_data text
);

create table events (
  cursor integer primary key,
  run_no integer not null,
  seq integer not null,
  attempt integer not null,
  n integer,
  at text not null,
  body text not null
);
create unique index events_by_run on events (run_no, seq);

create table audit_rows (
  no integer primary key,
  batch_no integer not null,
  kind text not null,
  execution_id text,
  run_id text,
  attempt integer,
  at text not null,
  body text not null,
  mac blob not null
);
create index audit_rows_by_execution on audit_rows (execution_id) where execution_id is not null;
create index audit_rows_by_run on audit_rows (run_id) where kind = 'start';

create table audit_batches (
  batch_no integer primary key,
  first_no integer not null,
  count integer not null,
  at text not null,
  mac blob not null
);

create table audit_anchors (
  batch_no integer primary key,
  last_no integer not null,
  pruned_before text not null,
  at text not null,
  mac blob not null,
  seal blob not null
);

create table open_executions (
  start_no integer primary key,
  execution_id text not null unique
);
`;
