/** judged_at: no longer used. Earlier versions stored here when a coordinator last checked leases. */
export const judgedAt = `
alter table store add column judged_at bigint;
`;
