/** events.received_at: when the event was stored, in milliseconds of the store's clock; null in rows of earlier versions. */
export const receivedAt = `
alter table events add column received_at bigint;
`;
