/**
 * session_states: what an executor needs to continue a session, saved by an attempt of a run. session_files: the work
 * directory that belongs to it.
 *
 * runs.continued counts lost attempts that did not use up an attempt, because the run continues from a saved state. A run
 * demands the place of its session until prefer_until; then rescue replaces its demands with demands_after.
 */
export const sessionState = `
create table session_states (
  session_id text collate "C" not null primary key,
  run_id text collate "C" not null,
  attempt integer not null,
  n bigint not null,
  format text collate "C" not null,
  portable integer not null,
  runner_id text collate "C" not null,
  place_id text collate "C",
  saved_at text collate "C" not null,
  bytes bytea not null
);

create table session_files (
  session_id text collate "C" not null,
  path text collate "C" not null,
  type text collate "C" not null,
  bytes bytea not null,
  primary key (session_id, path)
);

alter table runs add column continued integer not null default 0;
alter table runs add column prefer_until bigint;
alter table runs add column demands_after text collate "C";
create index runs_preferring on runs (prefer_until) where prefer_until is not null;
`;
