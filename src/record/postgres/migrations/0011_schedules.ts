/**
 * schedules: `due_at` is the next time, in the format of `created_at` like all times here. `enabled` follows the definition in
 * `body` unless somebody has changed it. `last_run_id` is the run that the next slot may overlap with.
 * schedule_slots: the outcome of each slot. Slots stay when their schedule is removed. `waits_for` is the run that has to end
 * before this one may start.
 */
export const schedules = `
create table schedules (
  schedule_id text collate "C" primary key,
  agent_name text collate "C" not null,
  name text collate "C" not null,
  created_by text collate "C" not null,
  source text collate "C" not null,
  body text collate "C" not null,
  enabled bigint not null,
  anchor text collate "C" not null,
  due_at text collate "C",
  rev bigint not null,
  last_run_id text collate "C",
  session_id text collate "C",
  created_at text collate "C" not null,
  updated_at text collate "C" not null
);
create index schedules_due on schedules (due_at) where due_at is not null;
create unique index schedules_by_name on schedules (agent_name, created_by, name) where source = 'api';
create index schedules_by_creator on schedules (created_by, schedule_id);
create index schedules_by_agent on schedules (agent_name, source);

create table schedule_slots (
  schedule_id text collate "C" not null,
  slot text collate "C" not null,
  outcome text collate "C" not null,
  why text collate "C",
  detail text collate "C",
  manual bigint not null default 0,
  at text collate "C" not null,
  run_id text collate "C",
  waits_for text collate "C",
  primary key (schedule_id, slot)
);
create index schedule_slots_by_run on schedule_slots (run_id) where run_id is not null;
create index schedule_slots_by_at on schedule_slots (at);
create index schedule_slots_waiting on schedule_slots (waits_for) where waits_for is not null;
create index schedule_slots_queued on schedule_slots (schedule_id) where waits_for is not null;
`;
