/**
 * run_counts: number of runs that ended in each quarter of an hour (`slot`, since 1970), by who submitted them and how they
 * ended; `reason` is empty if there is none. This migration counts the runs of the last 90 days once.
 *
 * store.indexed_to: the cursor of the last indexed event, see ../../search/. The search index is created when it is first
 * written, because not every SQLite that opens this file has FTS5.
 */
export const overview = `
create table run_counts (
  slot integer not null,
  created_by text not null,
  status text not null,
  reason text not null,
  runs integer not null,
  primary key (slot, created_by, status, reason)
) without rowid;
insert into run_counts
select unixepoch(finished_at) / 900, created_by, status, coalesce(reason, ''), count(*) from runs
where finished_at >= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-90 days') and unixepoch(finished_at) is not null
group by 1, 2, 3, 4;

alter table store add column indexed_to integer not null default 0;
`;
