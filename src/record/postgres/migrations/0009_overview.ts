/**
 * run_counts: number of runs that ended in each quarter of an hour (`slot`, since 1970), by who submitted them and how they
 * ended; `reason` is empty if there is none. This migration counts the runs of the last 90 days once.
 *
 * run_search: the words of a run (`seq` 0) and of its tool inputs, for full-text search; derived from the rest of the record.
 * store.indexed_to: the cursor of the last indexed event, see ../../search/.
 */
export const overview = `
create table run_counts (
  slot bigint not null,
  created_by text collate "C" not null,
  status text collate "C" not null,
  reason text collate "C" not null,
  runs bigint not null,
  primary key (slot, created_by, status, reason)
);
insert into run_counts
select floor(extract(epoch from finished_at::timestamptz) / 900), created_by, status, coalesce(reason, ''), count(*) from runs
where finished_at >= to_char(now() at time zone 'utc' - interval '90 days', 'YYYY-MM-DD') and finished_at ~ '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d'
group by 1, 2, 3, 4;

create table run_search (
  run_no bigint not null,
  seq bigint not null,
  words tsvector not null,
  primary key (run_no, seq)
);
create index run_search_words on run_search using gin (words);
alter table store add column indexed_to bigint not null default 0;
`;
