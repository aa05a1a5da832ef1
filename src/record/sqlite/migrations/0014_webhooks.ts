/**
 * hooks: addresses that submit runs; `body` is the definition. hook_keys: deliveries that created a run, kept until `until`
 * (milliseconds). webhooks: addresses to notify; `everyones` is 1 if an admin created it for all users. run_webhooks: those
 * that a run or its agent names. deliveries: what is sent to them. `next_at` (milliseconds) is when one may be handed out; a
 * claim moves it past its lease. chains: the follow-up of an ended run, one row per run; `depth` counts the runs before it.
 * `secret` is sealed, see docs/decisions/0027-webhooks-and-chains.md.
 *
 * runs.chained: its agent has a chain.
 */
export const webhooks = `
create table hooks (
  name text not null primary key,
  created_by text not null,
  body text not null,
  secret text not null
);

create table hook_keys (
  hook text not null,
  key text not null,
  until integer not null,
  primary key (hook, key)
);
create index hook_keys_by_end on hook_keys (until);

create table webhooks (
  webhook_no integer primary key,
  name text not null unique,
  created_by text not null,
  everyones integer not null,
  url text not null,
  events text not null,
  scope text not null,
  payload text,
  enabled integer not null,
  secret text not null,
  created_at text not null
);

create table run_webhooks (
  run_no integer not null,
  name text not null,
  primary key (run_no, name)
);

create table deliveries (
  delivery_no integer primary key,
  delivery_id text not null unique,
  webhook_no integer not null,
  run_no integer not null,
  event text not null,
  at text not null,
  body text not null,
  status text not null,
  attempts integer not null,
  next_at integer not null,
  give_up_at integer not null,
  response_status integer,
  response text,
  error text,
  settled_at text
);
create index deliveries_due on deliveries (webhook_no, next_at) where status = 'pending';
create index deliveries_by_webhook on deliveries (webhook_no, delivery_no);
create index deliveries_by_run on deliveries (run_no);

create table chains (
  parent_run_no integer not null primary key,
  child_run_id text,
  status text not null,
  agent_name text not null,
  parameters text not null,
  prompt text,
  fault text,
  depth integer not null
);
create index chains_pending on chains (parent_run_no) where status = 'pending';
create index chains_by_child on chains (child_run_id) where child_run_id is not null;

alter table runs add column chained integer not null default 0;
`;
