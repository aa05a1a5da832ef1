/**
 * When a coordinator last checked leases, by the database's clock: while one was running, runners could renew theirs. null
 * if that was before this column existed.
 */
export const judgedAt = `
alter table store add column judged_at bigint;
`;
