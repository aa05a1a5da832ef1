/**
 * turns: a ring of recent commits with their marks. A transaction whose commit was not acknowledged is found again by its
 * mark. Transaction ids would not do: after a crash the server reuses those of lost transactions.
 */
export const turns = `
create table turns (
  slot integer primary key,
  no bigint not null,
  mark text collate "C" not null
) with (fillfactor = 50);
`;
