/**
 * uploads: contents that an attempt has uploaded and that its `file` events may name. files: the resulting files; a run shows
 * those of its last attempt. Contents are stored outside of the database, by hash.
 *
 * sessions.runner_id: the runner that has the conversation, with its work directory and HOME.
 * runs.executor_session_id: the executor's id of the session in this run.
 *
 * runs.in_place: the run works in a project directory and needs it to itself. `directory` is that directory with its host,
 * known from the first claim that considered it. runners.only_agent: the runner only gets runs of this agent.
 */
export const files = `
create table uploads (
  run_no integer not null,
  attempt integer not null,
  sha256 text not null,
  size integer not null,
  primary key (run_no, attempt, sha256)
) without rowid;
create index uploads_by_hash on uploads (sha256);

create table files (
  run_no integer not null,
  attempt integer not null,
  path text not null,
  size integer not null,
  sha256 text not null,
  media_type text not null,
  primary key (run_no, attempt, path)
) without rowid;
create index files_by_hash on files (sha256);

alter table sessions add column forked_from text;
alter table sessions add column runner_id text;

alter table runs add column executor_session_id text;
alter table runs add column in_place integer;
alter table runs add column directory text;
create index runs_in_directory on runs (directory) where directory is not null and status in ('claimed', 'running', 'waiting', 'stopping');
create index runs_before_directory on runs (directory, demand_id) where status = 'pending' and blocked_by = 'directory';

alter table runners add column only_agent text;
`;
