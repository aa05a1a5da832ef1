/**
 * uploads: contents that an attempt has brought, which its `file` events may name. files: what became of
 * them; of a run those of its last attempt are shown. Contents lie outside, by their hash.
 *
 * sessions.runner_id is the runner that has the conversation: its work folder and HOME lie there.
 * runs.executor_session_id is what the executor called the session in this run.
 *
 * runs.in_place marks a run that works in a directory of its own choice, alone; `directory` is which one, with
 * its host, known from the first claim that looked at it. runners.only_agent: it is handed no others.
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
