/** events.received_at: when the event was stored, by the store's clock, in milliseconds; null in rows of earlier versions. */
export const receivedAt = `
alter table events add column received_at bigint;
`;
