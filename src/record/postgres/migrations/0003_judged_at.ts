/**
 * judged_at: when a coordinator last checked leases, by the database's clock. Runners can renew their leases only while a
 * coordinator is running, so leases that expired during an outage do not count. null in rows of earlier versions.
 */
export const judgedAt = `
alter table store add column judged_at bigint;
`;
