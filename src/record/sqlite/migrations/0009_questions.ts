/**
 * questions: what runs ask people. `created_by` is copied from the run. `expires_at` is in milliseconds of the store's clock.
 * usage_days: usage of an agent on a UTC day, by who submitted the runs. usage_sessions: the same by session. A run counts on
 * the day of its first turn. usage_limits: until when the runners of a place cannot use a provider.
 *
 * runs.asked: it has asked questions. resumed: it is handed out without a free slot, regardless of its agent's budget.
 * budgeted: its agent has a daily budget. continues: an attempt of it was parked, and the next one continues from there.
 * sessions.granted_tools: JSON list of tools that a person allowed for the rest of the session.
 */
export const questions = `
create table questions (
  question_no integer primary key,
  run_no integer not null,
  request_id text not null,
  attempt integer not null,
  created_by text not null,
  tool text not null,
  input text not null,
  effect text,
  input_schema text,
  asked_at text not null,
  expires_at integer not null,
  decision text,
  answered_by text,
  answered_at text,
  message text,
  edited_input text,
  remember text
);
create unique index questions_by_run on questions (run_no, request_id, attempt);
create index questions_open on questions (question_no) where decision is null;
create index questions_open_by_creator on questions (created_by, question_no) where decision is null;
create index questions_by_creator on questions (created_by, question_no);
create index questions_expiring on questions (expires_at) where decision is null;

create table usage_days (
  agent_name text not null,
  day text not null,
  created_by text not null,
  runs integer not null,
  turns integer not null,
  input_tokens real not null,
  output_tokens real not null,
  cost_usd real,
  primary key (agent_name, day, created_by)
) without rowid;
create index usage_days_by_day on usage_days (day);

create table usage_sessions (
  session_id text not null,
  day text not null,
  created_by text not null,
  agent_name text not null,
  runs integer not null,
  turns integer not null,
  input_tokens real not null,
  output_tokens real not null,
  cost_usd real,
  primary key (session_id, day, created_by)
) without rowid;
create index usage_sessions_by_day on usage_sessions (day);

create table usage_limits (
  provider text not null,
  place text not null,
  until integer not null,
  primary key (provider, place)
) without rowid;

alter table runs add column parked_why text;
alter table runs add column parked_until text;
alter table runs add column asked integer not null default 0;
alter table runs add column resumed integer not null default 0;
alter table runs add column budgeted integer not null default 0;
alter table runs add column continues integer not null default 0;
create index runs_resumed on runs (run_id) where status = 'pending' and blocked_by is null and resumed = 1;
create index runs_parked_until on runs (parked_until) where status = 'parked' and parked_until is not null;

alter table sessions add column granted_tools text;
`;
