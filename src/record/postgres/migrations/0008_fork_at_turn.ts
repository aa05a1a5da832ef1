/**
 * fork_at_turn: how many turns of its origin a fork keeps; null for all. sessions_by_origin: the forks of a session.
 */
export const forkAtTurn = `
alter table runs add column fork_at_turn integer;
alter table sessions add column fork_at_turn integer;
create index sessions_by_origin on sessions (forked_from) where forked_from is not null;
`;
