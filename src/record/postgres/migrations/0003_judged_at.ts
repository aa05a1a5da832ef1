/**
 * When one of the coordinators last judged leases, by the database's clock: while one could, runners could renew theirs.
 * Null: not since there is this column.
 */
export const judgedAt = `
alter table store add column judged_at bigint;
`;
