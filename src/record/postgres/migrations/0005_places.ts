/**
 * place_id: the state directory that a runner works in, and in which a session lies; null for those of older versions.
 * runner_dir: the directory of the runner that had the session last, which says where its profile is found.
 * only_pinned: such a runner takes no run but those that demand it by its id.
 */
export const places = `
alter table runners add column place_id text collate "C";
alter table runners add column only_pinned integer not null default 0;
alter table sessions add column place_id text collate "C";
alter table sessions add column runner_dir text collate "C";
`;
