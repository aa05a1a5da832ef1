/**
 * demands: `body` is what a run shows, `key` identifies the row. Runs of an agent with max_concurrent have their own rows,
 * so that a full cap closes a whole row without touching its runs. demand_matches: which runners can take which demand,
 * updated when either is added; a claim only checks the heads of these rows. `unmatched_since` is set while no runner
 * matches.
 *
 * runs_by_runner: what a runner holds. `claim_no` counts the claims of a runner, so that a report as of one claim says
 * nothing about later ones. `given_back` is the last attempt whose own runner gave the run back, so that a repeated finish
 * is recognized.
 *
 * A run without an agent_rev_id is executed by its creator (`exec`), and no runner claims it. Times that are compared only
 * with the store's clock are integers, in milliseconds.
 */
export const dispatch = `
create table new_demands (
  demand_id integer primary key,
  key text not null unique,
  body text not null,
  cap integer,
  cap_agent text,
  cap_runner text,
  unmatched_since integer
);
insert into new_demands (demand_id, key, body) select demand_id, body, body from demands;
drop table demands;
alter table new_demands rename to demands;
create index demands_by_cap on demands (cap_agent) where cap_agent is not null;
create index demands_unmatched on demands (unmatched_since) where unmatched_since is not null;

create table demand_matches (
  runner_id text not null,
  demand_id integer not null,
  primary key (runner_id, demand_id)
) without rowid;
create index demand_matches_by_demand on demand_matches (demand_id);

alter table runs add column agent_rev_id integer;
alter table runs add column claim_no integer;
alter table runs add column given_back integer;
alter table runs add column timeout_seconds real;
create index runs_by_runner on runs (runner_id, claim_no) where agent_rev_id is not null and status in ('claimed', 'running', 'waiting', 'stopping');
create index runs_busy_by_agent on runs (agent_name, runner_id) where agent_rev_id is not null and status in ('claimed', 'running', 'stopping');
create index runs_blocked on runs (session_id, run_id) where status = 'pending' and blocked_by is not null;

create table agent_revs (
  agent_rev_id integer primary key,
  hash blob not null unique,
  max_attempts integer not null,
  body text not null
);

create table runners (
  runner_id text primary key,
  key_hash text not null,
  registration_id text,
  owner text not null,
  name text,
  hostname text not null,
  project_dir text not null,
  executor_profile text not null,
  executor text not null,
  tags text not null,
  require_matching_tags integer not null,
  slots integer not null,
  status text not null,
  epoch integer not null,
  lease_until integer not null,
  claim_no integer not null,
  registered_claim_no integer not null,
  order_no integer not null,
  registered_at integer not null,
  last_seen_at integer not null
) without rowid;
create index runners_by_lease on runners (lease_until);

create table runner_agents (
  runner_id text not null,
  name text not null,
  body text not null,
  primary key (runner_id, name)
) without rowid;

create table claims (
  runner_id text not null,
  claim_no integer not null,
  claim_id text not null,
  primary key (runner_id, claim_no)
) without rowid;
create unique index claims_by_id on claims (runner_id, claim_id);

create table orders (
  runner_id text not null,
  no integer not null,
  run_no integer not null,
  attempt integer not null,
  body text not null,
  primary key (runner_id, no)
) without rowid;

create table idempotency (
  subject text not null,
  key text not null,
  fingerprint text not null,
  run_id text not null,
  at text not null,
  primary key (subject, key)
) without rowid;
create index idempotency_by_time on idempotency (at);

create table agents (
  name text primary key,
  owner text not null,
  updated_at text not null,
  body text not null
) without rowid;

create table sessions (
  session_id text primary key,
  executor_session_id text,
  agent_name text not null,
  created_by text not null,
  hostname text,
  executor_profile text,
  project_dir text,
  run_count integer not null,
  created_at text not null,
  last_used_at text not null
) without rowid;

create table tokens (
  token_id text primary key,
  hash text not null unique,
  kind text not null,
  role text not null,
  subject text not null,
  label text,
  created_by text not null,
  created_at text not null,
  expires_at text,
  revoked_at text,
  used_at text
) without rowid;
`;
