/**
 * schedules: `due_at` is the next time, in the format of `created_at` like all times here. `enabled` follows the definition in
 * `body` unless somebody has changed it. `last_run_id` is the run that the next slot may overlap with.
 * schedule_slots: the outcome of each slot. Slots stay when their schedule is removed. `waits_for` is the run that has to end
 * before this one may start.
 */
export const schedules = `
create table schedules (
  schedule_id text primary key,
  agent_name text not null,
  name text not null,
  created_by text not null,
  source text not null,
  body text not null,
  enabled integer not null,
  anchor text not null,
  due_at text,
  rev integer not null,
  last_run_id text,
  session_id text,
  created_at text not null,
  updated_at text not null
);
create index schedules_due on schedules (due_at) where due_at is not null;
create unique index schedules_by_name on schedules (agent_name, created_by, name) where source = 'api';
create index schedules_by_creator on schedules (created_by, schedule_id);
create index schedules_by_agent on schedules (agent_name, source);

create table schedule_slots (
  schedule_id text not null,
  slot text not null,
  outcome text not null,
  why text,
  detail text,
  manual integer not null default 0,
  at text not null,
  run_id text,
  waits_for text,
  primary key (schedule_id, slot)
) without rowid;
create index schedule_slots_by_run on schedule_slots (run_id) where run_id is not null;
create index schedule_slots_by_at on schedule_slots (at);
create index schedule_slots_waiting on schedule_slots (waits_for) where waits_for is not null;
create index schedule_slots_queued on schedule_slots (schedule_id) where waits_for is not null;
`;
