/**
 * place_id: the state directory that a runner works in, and where a session is; null for older versions.
 * runner_dir: the directory of the runner that last had the session, which tells where its profile is.
 * only_pinned: the runner only takes runs that demand it by id. judged_at: no longer used. Earlier
 * versions stored here when a process last checked leases.
 */
export const places = `
alter table runners add column place_id text;
alter table runners add column only_pinned integer not null default 0;
alter table sessions add column place_id text;
alter table sessions add column runner_dir text;
alter table store add column judged_at integer;
`;
