/**
 * turns: who made which commit of late, in a ring. A transaction whose commit was not answered is found again by its
 * mark: a server that has crashed gives the transaction ids of what it has lost to others.
 */
export const turns = `
create table turns (
  slot integer primary key,
  no bigint not null,
  mark text collate "C" not null
) with (fillfactor = 50);
`;
